// Where phases begin and end: what is written there, and the helper scenarios that write it.
import { eventsUrl, line } from './events.js';

// A store that is down or wrong costs one warning and at most a second, and fails nothing.
const PARAMS = {
  tags: { name: 'spikelab-event' }, // left out of rules, summaries and dashboards by this name
  timeout: '1s',
  responseCallback: null, // never a failed request of the test
  responseType: 'none',
};

/** The helper that watches the driver's own lateness. */
export const WATCHER = 'spikelab-clock';

// How long a helper may take for what it does at its moment.
const HELPER_MS = 5000;

// A phase that ended so much before its planned end was interrupted.
const EARLY_MS = 1000;

// A phase that users leave when they like ends with the last of them: nobody knows when.
const ended = ({ phases }, atMs) => phases.filter((phase) => !phase.once && phase.ends_ms === atMs);
const begun = ({ phases }, atMs) => phases.filter((phase) => phase.starts_ms === atMs);

function rates(ending, beginning) {
  const offered = ({ kind }) => kind === 'rate';
  return Object.fromEntries([
    ...ending.filter(offered).map(({ name }) => [name, 0]),
    ...beginning.filter(offered).map(({ name, from, value }) => [name, from === null ? value : from]),
  ]);
}

function moment(plan, lines, offered) {
  const url = eventsUrl(plan);
  return { url, lines: url ? lines.join('\n') : '', params: PARAMS, rates: offered };
}

/** What happens at a moment of the run: { url, lines, params } for the store, { rates } for the series. */
export function momentOf(plan, run, atMs) {
  const [ending, beginning] = [ended(plan, atMs), begun(plan, atMs)];
  const lines = [
    ...ending.map((phase) => line(phase, 'closed', phase.ends_ms, run)),
    ...beginning.map((phase) => line(phase, 'open', phase.ends_ms, run)),
  ];
  return moment(plan, lines, rates(ending, beginning));
}

/** The last word on all phases that have begun, when the run ends at `atMs`. */
export function finalMoment(plan, run, atMs) {
  const all = plan.phases.filter((phase) => phase.starts_ms <= atMs);
  const last = Math.max(...all.map((phase) => phase.starts_ms));
  const final = (phase) => {
    // The last users are gone now; of earlier ones nobody knows.
    if (phase.once) return ['closed', phase.starts_ms === last ? atMs : Math.min(atMs, phase.ends_ms)];
    return [atMs < phase.ends_ms - EARLY_MS ? 'aborted' : 'closed', Math.min(atMs, phase.ends_ms)];
  };
  const lines = all.map((phase) => line(phase, ...final(phase), run));
  return moment(plan, lines, rates(all.filter((phase) => phase.ends_ms > atMs), []));
}

// A spike's users have no due times, and nobody knows when it ends.
const watched = ({ phases }) => phases.filter((phase) => !phase.once);

/** What the helper that watches the driver's own lateness is told: { phases }. */
export const watchOf = (plan) => ({
  phases: watched(plan).map(({ name, starts_ms, ends_ms }) => ({ name, starts_ms, ends_ms })),
});

/** Its scenario, by name; none where there is nothing to watch. */
export function watcher(plan) {
  const ends = watched(plan).map((phase) => phase.ends_ms);
  if (ends.length === 0) return {};
  const maxDuration = `${plan.lead_ms + Math.max(...ends) + HELPER_MS}ms`;
  return { [WATCHER]: { ...helperScenario(WATCHER, 0), maxDuration } };
}

/** The helper scenarios by name, with their moments: one user, one iteration each. */
export function helpers(plan) {
  const moments = plan.phases.flatMap((phase) => [phase.starts_ms, ...(phase.once ? [] : [phase.ends_ms])]);
  const useful = eventsUrl(plan) || plan.phases.some(({ kind }) => kind === 'rate');
  const later = [...new Set(moments)].filter((atMs) => useful && atMs > 0);
  return Object.fromEntries(later.map((atMs) => [`spikelab-${Math.round(atMs)}ms`, atMs]));
}

/** A helper scenario. Its name is left out of rules and of the validity of the run. */
export const helperScenario = (name, atMs) => ({
  executor: 'per-vu-iterations',
  exec: 'boundary',
  vus: 1,
  iterations: 1,
  startTime: `${atMs}ms`,
  maxDuration: `${HELPER_MS}ms`,
  gracefulStop: '0s',
  env: { PHASE: name, BODY: '' },
});
