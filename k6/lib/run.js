// What happens once a run: its options, its start and its end.
import exec from 'k6/execution';

import { closePhases, openPhases } from './events.js';
import { readPlan } from './plan.js';
import { spikeOptions, spikeRequest } from './spike.js';

// An error of the user's gets one line; thrown, k6 would print the stack of the script.
function orAbort(work) {
  try {
    return work();
  } catch (error) {
    return exec.test.abort(error.message);
  }
}

const plan = orAbort(readPlan);

export const options = orAbort(() => spikeOptions(plan));

/** What k6 hands to every user and to teardown(). */
export function setup() {
  const run = {
    // --tag testid=… overrides the script's: events carry what the series carry.
    testid: exec.test.options.tags.testid,
    started_ms: Date.now(),
    requests: Object.fromEntries(plan.phases.map((phase) => [phase.name, spikeRequest(plan, phase)])),
  };
  return { ...run, annotated: openPhases(plan, run) };
}

// Runs after an interrupt as well, and k6 does not tell it so: the lab marks those `aborted`.
export function teardown(run) {
  if (run.annotated) closePhases(plan, run);
}
