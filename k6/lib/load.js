// Users of every script but the spike: an open loop, or a closed one with or without a pause.
// Every user holds a copy of this module: keep it small.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Gauge, Trend } from 'k6/metrics';

import { annotate, attempt, countSlow, isSample, judged } from './attempt.js';

const addOfferedRate = new Gauge('lab_offered_rate').add;
const addLateAnswer = new Counter('late_answers').add;
const addAfterEnd = new Counter('answers_after_end').add;
const addSinceDue = new Trend('response_time_due', true).add;
const addLateness = new Trend('driver_lateness', true).add;

// How often the driver's own lateness is looked at.
const TICK_MS = 50;

// What this user knows of its phase: its request, the start of the run in ms since 1970, the time by
// k6's clock at the start of the run and of the scenario, when the next request is due, and the least
// that one was behind a ramp's schedule.
let request = { phase: '' };
let epoch = 0;
let zero = 0;
let begin = 0;
let due = 0;
let least = 0;

// k6's clock in ms, finer than a microsecond (Date.now() has whole milliseconds), and the number of
// the iteration.
let now = null;
let iteration = null;

// What reads a property of k6's. The object itself, with all that it could say, is 5 KB a user.
const reader = (object, name) => Object.getOwnPropertyDescriptor(object, name).get;

function readClock() {
  now = reader(exec.instance, 'currentTestRunDuration');
  zero = now() - (Date.now() - epoch);
}

// Prepares for the phase.
function enter(run) {
  request = JSON.parse(run.requests[__ENV.PHASE]);
  epoch = run.started_ms;
  if (request.timed) readClock();
  const timed = request.schedule || request.blocks;
  if (!timed) return;
  const { scenario } = exec;
  begin = now() - scenario.progress * timed.length_ms;
  iteration = reader(scenario, 'iterationInTest');
  least = timed.shift_ms;
}

// Sleeps until a moment by the clock. Returns how late it is then, in ms.
function waitUntil(moment) {
  const ms = moment - now();
  if (ms > 0) sleep(ms / 1000);
  return Math.max(0, now() - moment);
}

// Waits until the user's next request is due. Returns how late it is, undefined if the phase is over.
function paced({ period_ms: period, spread_starts: spread, ends_ms: ends }, first) {
  // A request that is late moves the later ones; nothing is caught up.
  due = first ? now() + (spread ? Math.random() * period : 0) : Math.max(due + period, now());
  if (due - zero < ends) return waitUntil(due);
  // k6 ends the phase some milliseconds later than planned: no hurry to ask again.
  sleep(Math.max(zero + ends - now(), 10) / 1000);
  return undefined;
}

// Waits for a random moment in the block of time after this one. Returns how late the request is.
function byChance({ block_ms: block }) {
  const first = begin + block / 2;
  const place = Math.floor((now() - first) / block) + 1 + Math.random();
  return waitUntil(first + place * block);
}

/** When iteration n of an even rate or a ramp is due, in ms since the start of its scenario. */
export function dueMs(schedule, n) {
  const period = schedule.period_ms;
  if (period) return n * period;
  // Where the integral of the rate, which changes evenly, reaches n + 1.
  const { length_ms: length, from, to } = schedule;
  if (from === to) return (n + 1) / to;
  return (from * length - Math.sqrt(length * (from * from * length + 2 * (n + 1) * (to - from)))) / (from - to);
}

// How far the request is behind its place in the schedule. k6 counts on after a drop as if nothing
// had been due: from then on this is too much.
function behind(schedule) {
  const ms = now() - begin - dueMs(schedule, iteration());
  if (ms < least) least = ms;
  return Math.max(0, ms - Math.max(0, least));
}

// Says at which rate a ramp is on its way.
function offerRamped({ from, to, starts_ms: starts, ends_ms: ends }, atMs) {
  addOfferedRate(from + (to - from) * Math.min(1, Math.max(0, (atMs - starts) / (ends - starts))));
}

/** Says at which rates phases are offered, by their names, as `k6_lab_offered_rate`. */
export function offer(rates) {
  for (const [name, rate] of Object.entries(rates)) addOfferedRate(rate, { scenario: name });
}

// The driver is late or not: noted each TICK_MS, in each phase that goes, until the last one ends.
function watch(phases) {
  const end = Math.max(...phases.map(({ ends_ms: ends }) => ends));
  const tags = phases.map(({ name }) => ({ scenario: name }));
  for (let tick = now() + TICK_MS; tick - zero < end; tick += TICK_MS) {
    const late = waitUntil(tick);
    phases.forEach(({ starts_ms: starts, ends_ms: ends }, index) => {
      if (tick - zero >= starts && tick - zero < ends) addLateness(late, tags[index]);
    });
  }
}

/** The one iteration of a helper scenario, where phases begin or end, or of the one that watches. */
export function boundary(run) {
  const moment = JSON.parse(run.requests[__ENV.PHASE]);
  if (moment.phases) {
    epoch = run.started_ms;
    readClock();
    watch(moment.phases);
    return;
  }
  offer(moment.rates);
  annotate(moment);
}

// Returns how late the user's turn is, undefined if the phase is over.
function waitForTurn(first) {
  if (request.period_ms) return paced(request, first);
  if (request.blocks) return byChance(request.blocks);
  return request.jitter_ms ? waitUntil(now() + Math.random() * request.jitter_ms) : 0;
}

/** One iteration of a user. */
export function user(run) {
  const first = request.phase !== __ENV.PHASE;
  if (first) enter(run);
  const late = waitForTurn(first);
  if (late === undefined) return;
  const offset = request.schedule ? behind(request.schedule) : 0;
  if (request.ramp && isSample(request)) offerRamped(request.ramp, Date.now() - epoch);
  const last = attempt(request, epoch, late);
  const good = last.ms !== undefined;
  const sinceDue = good ? last.ms + offset : undefined;
  if (good && request.schedule) {
    addSinceDue(sinceDue);
    if (sinceDue >= request.slow_ms) countSlow(sinceDue, request.limits, 'due');
  }
  judged(sinceDue);
  if (last.ended <= request.window_ms) return;
  if (last.status > 0) addAfterEnd(1);
  if (good && last.ended > request.late_ms) addLateAnswer(1);
}
