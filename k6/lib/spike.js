// A plan's phases of kind `users` as k6 options: every user at once, one request each.
import { milliseconds } from './duration.js';
import { thresholdOf } from './slo.js';

// Users that have not started when a scenario's time is up are dropped without a word, so
// it is long; the run ends with the last answer, and each request has a timeout of its own.
const TIME_TO_START_ALL_MS = 10 * 60 * 1000;

const ERROR_CLASSES = ['dial_timeout', 'request_timeout', 'reset', 'refused', 'http_4xx', 'http_5xx', 'other'];

const SUMMARY = [
  'http_req_duration{scenario:NAME,expected_response:true}',
  'latency_with_failures{scenario:NAME}',
  'success{scenario:NAME}',
  'attempt_started{scenario:NAME}',
  'attempt_ended{scenario:NAME}',
  'answer_bytes{scenario:NAME}',
  ...ERROR_CLASSES.map((name) => `failures{scenario:NAME,class:${name}}`),
];

function check(phase) {
  if (phase.kind !== 'users') {
    throw new Error(`phase "${phase.name}": kind "${phase.kind}" is not a spike; spike.js runs kind "users"`);
  }
  if (!Number.isInteger(phase.value) || phase.value < 1) {
    throw new Error(`phase "${phase.name}": ${phase.value} users; give a whole number from 1 on (VUS=…)`);
  }
}

function scenario(phase) {
  return {
    executor: 'per-vu-iterations',
    vus: phase.value,
    iterations: 1,
    startTime: phase.start,
    maxDuration: `${milliseconds(phase.duration) + TIME_TO_START_ALL_MS}ms`,
    gracefulStop: phase.duration,
    env: { PHASE: phase.name },
  };
}

function thresholds(phase, slo) {
  const own = (metric) => `${metric}{scenario:${phase.name}}`;
  const all = {
    [own('attempts')]: [`count==${phase.value}`], // invalid unless every user started
    [own('dropped_iterations')]: ['count==0'],
  };
  // A sub-metric is in the summary only if thresholds name it; an empty list judges nothing.
  for (const metric of SUMMARY) all[metric.replace('NAME', phase.name)] = [];
  for (const { metric, threshold } of slo.map(thresholdOf)) {
    all[own(metric)] = [...(all[own(metric)] || []), threshold];
  }
  return all;
}

/** The k6 options of a plan whose phases are all spikes. Throws an Error of one line. */
export function spikeOptions({ testid, phases, request, slo }) {
  phases.forEach(check);
  return {
    scenarios: Object.fromEntries(phases.map((phase) => [phase.name, scenario(phase)])),
    thresholds: Object.assign({}, ...phases.map((phase) => thresholds(phase, slo))),
    noConnectionReuse: !request.keep_alive,
    discardResponseBodies: true,
    tags: { testid },
    // Without `url` and `error`: both can differ for every request (ports in the text).
    systemTags: ['scenario', 'name', 'method', 'status', 'expected_response', 'error_code'],
    summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)', 'p(99.9)', 'count'],
  };
}

/** What each user of a phase sends: { method, url, body, params }. */
export function spikeRequest({ target, request }, phase) {
  return {
    method: request.method,
    url: (phase.url || target.url) + request.path,
    body: request.body,
    params: {
      headers: request.headers,
      tags: { name: request.path.split('?')[0] },
      // A user cut off by the graceful stop would leave no trace; by its timeout it counts.
      timeout: Math.min(milliseconds(request.timeout), milliseconds(phase.duration)),
    },
  };
}
