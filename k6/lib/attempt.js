// One attempt of one user: a request, and what the run's summary needs to know of it.
// Every user holds a copy of this module: keep it small. A metric is about 1 KB a user, one more
// module that imports k6/http about 10 KB; hence the events' request is here as well.
import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';

// Stands for an infinite response time: 115 days, which no answer takes.
const FAILED_MS = 1e10;

const attempts = new Counter('attempts');
const attemptStarted = new Gauge('attempt_started', true);
const attemptEnded = new Gauge('attempt_ended', true);
const answerBytes = new Trend('answer_bytes');
const failures = new Counter('failures');
const responseTime = new Trend('response_time', true);
// By hand k6 judges the objectives, by these; the lab judges its runs itself.
const success = __ENV.LAB_PLAN ? null : new Rate('success');
const withFailures = __ENV.LAB_PLAN ? null : new Trend('response_time_with_failures', true);
const slow = new Counter('slow');

// The phase in which this user has begun a request, and in which it has shown a wrong answer.
let begun = '';
let shown = '';

// Whether k6's own metrics have been told which statuses this user expects.
let told = false;

// k6 counts a failure (`http_req_failed`, `expected_response`) where the lab does.
function tellExpected(ranges) {
  http.setResponseCallback(http.expectedStatuses(...ranges));
  told = true;
}

// The codes from 1400 on are statuses, which the plan may expect.
function isGood(status, code, { least, most, expect }) {
  if (code !== 0 && code !== 1000 + status) return false;
  if (status >= least && status <= most) return true;
  return expect.some(({ min, max }) => status >= min && status <= max);
}

// k6's error codes of requests without an answer; all its codes are in its documentation.
function errorClass(status, code) {
  if (status >= 500) return 'http_5xx';
  if (status >= 400) return 'http_4xx';
  switch (code) {
    case 1050: return 'request_timeout';
    case 1201: return 'reset'; // broken pipe: writing to a connection that was reset before
    case 1211: return 'dial_timeout';
    case 1212: return 'refused';
    case 1220: return 'reset';
    default: return 'other';
  }
}

// An answer of no class of its own, such as a redirect, is an answer all the same.
function countFailure(status, code) {
  const tags = { class: errorClass(status, code) };
  if (tags.class === 'other' && status > 0 && code === 0) tags.answered = 'true';
  failures.add(1, tags);
}

/** Counts a good answer that missed limits; `since` says from which moment its time counts. */
export function countSlow(ms, limits, since) {
  for (const limit of limits) {
    if (ms > limit.ms || (ms === limit.ms && !limit.inclusive)) slow.add(1, { objective: limit.objective, since });
  }
}

/** Where k6 judges: a response time, or the failure of a request (undefined). */
export function judged(ms) {
  if (!success) return;
  success.add(ms !== undefined);
  withFailures.add(ms === undefined ? FAILED_MS : ms);
}

// The response time of a good answer, which began so late; undefined of another one. `blocked` is
// the wait for a connection, connecting and TLS; `duration` the rest.
function record(response, status, request, lateMs) {
  const code = response.error_code;
  const good = isGood(status, code, request);
  const length = Number(response.headers['Content-Length']);
  if (length >= 0) answerBytes.add(length);
  if (!good) {
    countFailure(status, code);
    return undefined;
  }
  const timings = response.timings;
  const ms = lateMs + timings.blocked + timings.duration;
  responseTime.add(ms);
  if (ms >= request.slow_ms) countSlow(ms, request.limits, 'start');
  return ms;
}

// One line for whoever reads k6's log; the lab takes a sample of wrong answers from there.
function show({ status, body, headers }, phase) {
  const text = body || (headers.Location && `Location: ${headers.Location}`);
  if (!status || !text || shown === phase) return;
  shown = phase;
  const sample = { phase, status, body: text.slice(0, 200) };
  console.warn(`spikelab-body ${JSON.stringify(sample)}`);
}

/** Whether this user is one of the phase's few that see bodies and say what is offered. */
export const isSample = ({ one_user_in: n }) => __VU % n === 0;

// What the attempt was that a user made last. One object, since each takes time to make.
const last = { status: 0, ms: undefined, ended: 0 };

/**
 * Sends one request, which is so late, and records it; `epoch` is the start of the run in ms since
 * 1970. Returns { status, ms, ended }, which the next one overwrites: the response time of a good
 * answer (undefined of another one), and when it ended (ms of the run).
 */
export function attempt(request, epoch, lateMs) {
  if (!told) tellExpected(request.expect);
  const sample = isSample(request);
  const params = sample ? { ...request.params, responseType: 'text' } : request.params;
  // A user's first request of the phase: the phase's first is among them.
  if (begun !== request.phase) {
    begun = request.phase;
    attemptStarted.add(Date.now() - epoch);
  }
  attempts.add(1);
  // All users of a phase share the text of its environment; a copy each would be their memory.
  const body = request.has_body ? __ENV.BODY : null;
  const response = http.request(request.method, request.url, body, params);
  last.status = response.status;
  last.ms = record(response, last.status, request, lateMs);
  last.ended = Date.now() - epoch;
  if (last.ended >= request.ending_ms) attemptEnded.add(last.ended);
  if (sample && last.ms === undefined) show(response, request.phase);
  return last;
}

/** Writes events (boundaries.js); false if the store did not take them. No user waits for it. */
export function annotate({ url, lines, params }) {
  if (!lines) return true;
  const { status } = http.post(url, lines, params);
  // k6 itself warns, with the reason, where there was no answer.
  if (status > 0 && status !== 204) console.warn(`phase not annotated: ${url} answered ${status}`);
  return status === 204;
}

/** The one iteration of a helper scenario, where phases begin or end. */
export function boundary(run) {
  annotate(run.requests[__ENV.PHASE]);
}
