// One attempt of one user: a request, and what the run's summary needs to know of it.
// Every user holds a copy of this module: keep it small (a metric is about 1 KB a user).
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

function record(response) {
  const good = response.status >= 200 && response.status < 400 && response.error_code === 0;
  success.add(good);
  latencyWithFailures.add(good ? response.timings.duration : FAILED_MS);
  if (!good) failures.add(1, { class: errorClass(response) });
  const length = Number(response.headers['Content-Length']);
  if (length >= 0) answerBytes.add(length);
}

/** Sends one request and records it; `epoch` is the start of the run in ms since 1970. */
export function attempt({ method, url, body, params }, epoch) {
  attemptStarted.add(Date.now() - epoch);
  attempts.add(1);
  record(http.request(method, url, body, params));
  attemptEnded.add(Date.now() - epoch);
}
