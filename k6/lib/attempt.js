// One attempt of one user: a request, and what the run's summary needs to know of it.
// Every user holds a copy of this module: keep it small. A metric is about 1 KB a user, one more
// module that imports k6/http about 10 KB; hence the events' request is here as well.
import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';

// Stands for an infinite latency: 115 days, which no answer takes.
const FAILED_MS = 1e10;

const attempts = new Counter('attempts');
const attemptStarted = new Gauge('attempt_started', true);
const attemptEnded = new Gauge('attempt_ended', true);
const answerBytes = new Trend('answer_bytes');
const success = new Rate('success');
const failures = new Counter('failures');
const latencyWithFailures = new Trend('latency_with_failures', true);
const slow = new Counter('slow');

// The phase in which this user has shown a wrong answer.
let shown = '';

// Whether k6's own metrics have been told which statuses this user expects.
let told = false;

// k6 counts a failure (`http_req_failed`, `expected_response`) where the lab does.
function tellExpected(ranges) {
  http.setResponseCallback(http.expectedStatuses(...ranges.map(([min, max]) => ({ min, max }))));
  told = true;
}

// The codes from 1400 on are statuses, which the plan may expect.
function isGood({ status, error_code: code }, ranges) {
  if (code !== 0 && code !== 1000 + status) return false;
  return ranges.some(([least, most]) => status >= least && status <= most);
}

// k6's error codes of requests without an answer; all its codes are in its documentation.
function errorClass({ status, error_code: code }) {
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
function countFailure(response) {
  const tags = { class: errorClass(response) };
  if (tags.class === 'other' && response.status > 0 && response.error_code === 0) tags.answered = 'true';
  failures.add(1, tags);
}

function countSlow(ms, limits) {
  for (const limit of limits) {
    if (ms > limit.ms || (ms === limit.ms && !limit.inclusive)) slow.add(1, limit.tags);
  }
}

// Returns whether the answer was a good one.
function record(response, request) {
  const good = isGood(response, request.expect);
  success.add(good);
  const ms = good ? response.timings.duration : FAILED_MS;
  latencyWithFailures.add(ms);
  if (ms >= request.slow_ms && good) countSlow(ms, request.limits);
  if (!good) countFailure(response);
  const length = Number(response.headers['Content-Length']);
  if (length >= 0) answerBytes.add(length);
  return good;
}

// One line for whoever reads k6's log; the lab takes a sample of wrong answers from there.
function show({ status, body, headers }) {
  const text = body || (headers.Location && `Location: ${headers.Location}`);
  if (!status || !text || shown === __ENV.PHASE) return;
  shown = __ENV.PHASE;
  const sample = { phase: shown, status, body: text.slice(0, 200) };
  console.warn(`spikelab-body ${JSON.stringify(sample)}`);
}

/** Whether this user is one of the phase's few that see bodies and say what is offered. */
export const isSample = ({ one_user_in: n }) => __VU % n === 0;

/**
 * Sends one request and records it; `epoch` is the start of the run in ms since 1970. Returns when
 * a good answer had come (ms of the run), 0 without one.
 */
export function attempt(request, epoch) {
  if (!told) tellExpected(request.expect);
  const sample = isSample(request);
  const params = sample ? { ...request.params, responseType: 'text' } : request.params;
  attemptStarted.add(Date.now() - epoch);
  attempts.add(1);
  // All users of a phase share the text of its environment; a copy each would be their memory.
  const response = http.request(request.method, request.url, __ENV.BODY || null, params);
  const good = record(response, request);
  const ended = Date.now() - epoch;
  attemptEnded.add(ended);
  if (sample && !good) show(response);
  return good ? ended : 0;
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
