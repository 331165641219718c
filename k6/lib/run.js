// What happens once a run: its options, its start and its end.
import exec from 'k6/execution';

import { annotate } from './attempt.js';
import { finalMoment, helpers, momentOf, WATCHER, watchOf } from './boundaries.js';
import { offer } from './load.js';
import { optionsOf, requestOf } from './options.js';
import { readPlan } from './plan.js';
import { summaryOf } from './summary.js';
import { authorization } from './token.js';

// An error of the user's gets one line; thrown, k6 would print the stack of the script.
function orAbort(work) {
  try {
    return work();
  } catch (error) {
    return exec.test.abort(error.message);
  }
}

// --throw makes an error of every failed request; an event never fails a test.
function annotated(moment) {
  try {
    return annotate(moment);
  } catch (error) {
    return false;
  }
}

const mapped = (object, value) => Object.fromEntries(Object.entries(object).map(([key, item]) => [key, value(item)]));

// What each scenario's users are told is a text: each user gets those of all scenarios, and objects
// would be 2 to 4 KB each.
function start(plan, headers) {
  // --tag testid=… overrides the script's: events carry what the series carry.
  const { testid } = exec.test.options.tags;
  const run = { testid, started_ms: Date.now() + plan.lead_ms };
  const first = momentOf(plan, run, 0);
  offer(first.rates);
  // A store that let us wait has no such point: the run starts now.
  if (!annotated(first)) run.started_ms = Date.now() + plan.lead_ms;
  const told = {
    ...Object.fromEntries(plan.phases.map((phase) => [phase.name, requestOf(plan, phase, headers)])),
    ...mapped(helpers(plan), (atMs) => momentOf(plan, run, atMs)),
    [WATCHER]: watchOf(plan),
  };
  run.requests = mapped(told, JSON.stringify);
  return run;
}

/**
 * What a script exports for k6: { options, setup, teardown, handleSummary }. The script is
 * { name, kinds, defaults } with, by kind of phase, the way to load it (executors.js), and, by
 * environment variable, the load by hand; and where it applies { one_phase, new_connections,
 * authorized }.
 */
export function prepare(script) {
  const plan = orAbort(() => readPlan(script));
  return {
    options: orAbort(() => optionsOf(plan)),

    /** What k6 hands to every user and to teardown(). */
    setup() {
      return start(plan, script.authorized ? orAbort(() => authorization(plan)) : {});
    },

    // Runs after an interrupt as well.
    teardown(run) {
      const last = finalMoment(plan, run, Date.now() - run.started_ms);
      offer(last.rates);
      annotated(last);
    },

    // By hand k6 prints its own.
    handleSummary: (data) => (plan.summary ? summaryOf(plan, data) : undefined),
  };
}
