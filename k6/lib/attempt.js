// One attempt of one user: a request, and what the run's summary needs to know of it.
// Every user holds a copy of this module: keep it small. A function or a metric is about 1 KB a
// user, iterators (for … of, f(...list)) 6 KB once a user needs them, one more module that imports
// k6/http about 10 KB; hence the events' request is here as well.
import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';

// Stands for an infinite response time: 115 days, which no answer takes.
const FAILED_MS = 1e10;

// Of a metric its `add` alone is held, which is half of it.
const addAttempt = new Counter('attempts').add;
const addStarted = new Gauge('attempt_started', true).add;
const addEnded = new Gauge('attempt_ended', true).add;
const addBytes = new Trend('answer_bytes').add;
const addFailure = new Counter('failures').add;
const addResponseTime = new Trend('response_time', true).add;
const addSlow = new Counter('slow').add;
// By hand k6 judges the objectives, by these; the lab judges its runs itself.
const addSuccess = __ENV.LAB_PLAN ? null : new Rate('success').add;
const addWithFailures = __ENV.LAB_PLAN ? null : new Trend('response_time_with_failures', true).add;

// The phase in which this user has begun a request, and in which it has shown a wrong answer.
let begun = '';
let shown = '';

// Whether k6's own metrics have been told which statuses this user expects.
let told = false;

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
  addFailure(1, tags);
}

/** Counts a good answer that missed limits; `since` says from which moment its time counts. */
export function countSlow(ms, limits, since) {
  for (let i = 0; i < limits.length; i += 1) {
    const { ms: limit, inclusive, objective } = limits[i];
    if (ms > limit || (ms === limit && !inclusive)) addSlow(1, { objective, since });
  }
}

/** Where k6 judges: a response time, or the failure of a request (undefined). */
export function judged(ms) {
  if (!addSuccess) return;
  addSuccess(ms !== undefined);
  addWithFailures(ms === undefined ? FAILED_MS : ms);
}

// The response time of a good answer, which began so late; undefined of another one. `blocked` is
// the wait for a connection, connecting and TLS; `duration` the rest.
function record(response, status, request, lateMs) {
  const code = response.error_code;
  if (!isGood(status, code, request)) {
    countFailure(status, code);
    return undefined;
  }
  const { blocked, duration } = response.timings;
  const ms = lateMs + blocked + duration;
  addResponseTime(ms);
  if (ms >= request.slow_ms) countSlow(ms, request.limits, 'start');
  return ms;
}

// The size of an answer, and of a user's first wrong one a line for whoever reads k6's log: the lab
// takes a sample of wrong answers from there.
function look({ status, body, headers }, good, phase) {
  const length = Number(headers['Content-Length']);
  if (length >= 0) addBytes(length);
  if (good || !status || shown === phase) return;
  const text = body || (headers.Location && `Location: ${headers.Location}`);
  if (!text) return;
  shown = phase;
  const sample = { phase, status, body: text.slice(0, 200) };
  console.warn(`spikelab-body ${JSON.stringify(sample)}`);
}

/** Whether this user is one of the phase's few that look at answers and say what is offered. */
export const isSample = ({ one_user_in: n }) => __VU % n === 0;

// What the attempt was that a user made last. One object, since each takes time to make.
const last = { status: 0, ms: undefined, ended: 0 };

/**
 * Sends one request, which is so late, and records it; `epoch` is the start of the run in ms since
 * 1970. Returns { status, ms, ended }, which the next one overwrites: the response time of a good
 * answer (undefined of another one), and when it ended (ms of the run).
 */
export function attempt(request, epoch, lateMs) {
  if (!told) {
    // k6 counts a failure (`http_req_failed`, `expected_response`) where the lab does.
    http.setResponseCallback(http.expectedStatuses.apply(null, request.expect));
    told = true;
  }
  const sample = isSample(request);
  const params = sample ? { ...request.params, responseType: 'text' } : request.params;
  // A user's first request of the phase: the phase's first is among them.
  if (begun !== request.phase) {
    begun = request.phase;
    addStarted(Date.now() - epoch);
  }
  addAttempt(1);
  // All users of a phase share the text of its environment; a copy each would be their memory.
  const body = request.has_body ? __ENV.BODY : null;
  const response = http.request(request.method, request.url, body, params);
  last.status = response.status;
  last.ms = record(response, last.status, request, lateMs);
  last.ended = Date.now() - epoch;
  if (last.ended >= request.ending_ms) addEnded(last.ended);
  if (sample) look(response, last.ms !== undefined, request.phase);
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
