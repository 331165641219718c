// What a phase means in k6: a scenario for each way to load.

import { leadMs, schedule, usersByChance } from './poisson.js';

// Users that have not started when a scenario's time is up are dropped without a word, so
// it is long; the run ends with the last answer, and each request has a timeout of its own.
const TIME_TO_START_ALL_MS = 10 * 60 * 1000;

// What is on its way at the end of a phase ends by its own timeout, and then counts.
const AFTER_TIMEOUT_MS = 5000;

const RATE_SECONDS_IN_FLIGHT = 2;
const FEWEST_RATE_USERS = 10;

// k6 counts whole iterations a time unit: 12.5 a second are 125 in 10 s.
function wholeRates(rates) {
  const isWhole = (unit) => rates.every((rate) => Math.abs(rate * unit - Math.round(rate * unit)) < 1e-6);
  const seconds = [1, 10, 100, 1000].find(isWhole) || 10000;
  return { timeUnit: `${seconds}s`, unit_ms: seconds * 1000, whole: (rate) => Math.round(rate * seconds) };
}

const lengthOf = (phase) => phase.ends_ms - phase.starts_ms;

/** Users that a phase may take. */
export function mostUsers(phase) {
  if (phase.kind === 'users') return phase.value;
  if (phase.by_chance && !phase.most_users) return usersByChance(phase, phase.value, RATE_SECONDS_IN_FLIGHT);
  const inFlight = (seconds) => Math.ceil(Math.max(phase.value, phase.from || 0) * seconds);
  const least = Math.max(FEWEST_RATE_USERS, inFlight(RATE_SECONDS_IN_FLIGHT));
  // A user that waits out its jitter serves nobody else.
  return phase.most_users || least + inFlight(phase.jitter_ms / 1000);
}

const graceful = ({ jitter_ms, timeout_ms }) => ({ gracefulStop: `${jitter_ms + timeout_ms + AFTER_TIMEOUT_MS}ms` });

// Allotted before the start: a user made during the run would cost the others time.
const allotted = (phase) => ({ preAllocatedVUs: mostUsers(phase), maxVUs: mostUsers(phase) });

/** Every user at once, one request each. */
function once(phase) {
  return {
    executor: 'per-vu-iterations',
    vus: phase.value,
    iterations: 1,
    maxDuration: `${phase.ends_ms - phase.starts_ms + TIME_TO_START_ALL_MS}ms`,
    gracefulStop: phase.duration,
  };
}

/** A closed loop: each user's next request follows the answer, or a pause. */
function closed(phase) {
  const rampUp = phase.ramp_up_ms;
  if (!rampUp) {
    return { executor: 'constant-vus', vus: phase.value, duration: phase.duration, ...graceful(phase) };
  }
  const rest = phase.ends_ms - phase.starts_ms - rampUp;
  const stages = [{ duration: `${rampUp}ms`, target: phase.value }];
  if (rest > 0) stages.push({ duration: `${rest}ms`, target: phase.value });
  return { executor: 'ramping-vus', startVUs: 0, stages, ...graceful(phase) };
}

/** An open loop: requests start at this rate, whatever the answers do. */
function open(phase) {
  if (phase.by_chance) {
    return { executor: 'ramping-arrival-rate', ...schedule(phase), ...allotted(phase), ...graceful(phase) };
  }
  const { timeUnit, whole } = wholeRates([phase.value]);
  return {
    executor: 'constant-arrival-rate',
    rate: whole(phase.value),
    timeUnit,
    duration: `${lengthOf(phase)}ms`,
    ...allotted(phase),
    ...graceful(phase),
  };
}

/** An open loop whose rate changes evenly. */
function ramp(phase) {
  const { timeUnit, whole } = wholeRates([phase.from, phase.value]);
  return {
    executor: 'ramping-arrival-rate',
    startRate: whole(phase.from),
    timeUnit,
    stages: [{ target: whole(phase.value), duration: `${lengthOf(phase)}ms` }],
    ...allotted(phase),
    ...graceful(phase),
  };
}

// k6 begins a ramp's schedule when it has its users ready, which took 20 us each.
const SHIFT_MS_A_USER = 0.1;

/**
 * When k6 starts the iterations of an even rate or a ramp, as `dueMs` (load.js) reads it; undefined
 * of phases whose requests have due times of their own, or none.
 */
export function scheduleOf(phase) {
  if (phase.jitter_ms || phase.by_chance || !['open', 'ramp'].includes(phase.loop)) return undefined;
  const rates = phase.loop === 'ramp' ? [phase.from, phase.value] : [phase.value];
  const { unit_ms: unit, whole } = wholeRates(rates);
  const length_ms = lengthOf(phase);
  if (phase.loop === 'ramp') {
    const [from, to] = rates.map((rate) => whole(rate) / unit);
    return { length_ms, from, to, shift_ms: SHIFT_MS_A_USER * mostUsers(phase) };
  }
  // Whole nanoseconds, as in k6.
  return { length_ms, period_ms: Math.floor(unit * 1e6 / whole(phase.value)) / 1e6, shift_ms: 0 };
}

const EXECUTORS = { once, closed, open, ramp };

/** The phase's k6 scenario, in a run that starts so late; `phase.loop` says which way. */
export function scenario(phase, leadOfRun) {
  const lead = phase.by_chance ? leadMs(phase) : 0;
  return {
    ...EXECUTORS[phase.loop](phase),
    startTime: `${leadOfRun + phase.starts_ms - lead}ms`,
    // BODY is set in any case: k6 would read one of the user's own environment.
    env: { PHASE: phase.name, BODY: phase.body },
  };
}
