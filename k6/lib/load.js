// Users of every script but the spike: an open loop, or a closed one with or without a pause.
// Every user holds a copy of this module: keep it small.
import { sleep } from 'k6';
import { Counter, Gauge } from 'k6/metrics';

import { annotate, attempt, isSample } from './attempt.js';

const offeredRate = new Gauge('lab_offered_rate');
const lateAnswers = new Counter('late_answers');

// Of this user's last pause: its phase, and when the request after it was due (ms of the run).
let paced = '';
let due = 0;

// Waits until the user's next request is due; false if the phase is over by then.
function isDue({ period_ms: period, spread_starts: spread, ends_ms: ends }, epoch) {
  const now = Date.now() - epoch;
  // A request that is late moves the later ones; nothing is caught up.
  if (paced === __ENV.PHASE) due = Math.max(due + period, now);
  else due = now + (spread ? Math.random() * period : 0);
  paced = __ENV.PHASE;
  if (due < ends) {
    if (due > now) sleep((due - now) / 1000);
    return true;
  }
  // k6 ends the phase some milliseconds later than planned: no hurry to ask again.
  sleep(Math.max(ends - now, 10) / 1000);
  return false;
}

function rampedRate({ from, to, starts_ms: starts, ends_ms: ends }, now) {
  return from + (to - from) * Math.min(1, Math.max(0, (now - starts) / (ends - starts)));
}

/** Says at which rates phases are offered, by their names, as `k6_lab_offered_rate`. */
export function offer(rates) {
  for (const [phase, rate] of Object.entries(rates)) offeredRate.add(rate, { scenario: phase });
}

/** One iteration of a user. */
export function user(run) {
  const request = run.requests[__ENV.PHASE];
  if (request.period_ms && !isDue(request, run.started_ms)) return;
  if (request.jitter_ms) sleep(Math.random() * request.jitter_ms / 1000);
  if (request.ramp && isSample(request)) {
    offeredRate.add(rampedRate(request.ramp, Date.now() - run.started_ms));
  }
  if (attempt(request, run.started_ms) > request.late_ms) lateAnswers.add(1);
}

/** The one iteration of a helper scenario, where phases begin or end. */
export function boundary(run) {
  const moment = run.requests[__ENV.PHASE];
  offer(moment.rates);
  annotate(moment);
}
