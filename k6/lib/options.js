// A plan as k6's options and as what its users send.
import { helpers, helperScenario } from './boundaries.js';
import { mostUsers, scenario } from './executors.js';
import { limitsOf, thresholdOf } from './slo.js';

const ERROR_CLASSES = ['dial_timeout', 'request_timeout', 'reset', 'refused', 'http_4xx', 'http_5xx', 'other'];

const SUMMARY = [
  'http_req_duration{scenario:NAME,expected_response:true}',
  'latency_with_failures{scenario:NAME}',
  'success{scenario:NAME}',
  'attempts{scenario:NAME}',
  'attempt_started{scenario:NAME}',
  'attempt_ended{scenario:NAME}',
  'answer_bytes{scenario:NAME}',
  ...ERROR_CLASSES.map((name) => `failures{scenario:NAME,class:${name}}`),
  'failures{scenario:NAME,answered:true}',
];

// Wrong answers that a phase shows, by as many of its users.
const BODIES = 5;

// A drain that short is the last answers' own time.
const SHORT_DRAIN_MS = 1000;

// From when on a good answer shows a queue that the phase left behind. Only a rate has due times.
function lateFrom({ kind, ends_ms, jitter_ms }, limits) {
  if (kind !== 'rate' || limits.length === 0) return {};
  return { late_ms: ends_ms + jitter_ms + Math.max(SHORT_DRAIN_MS, limits[limits.length - 1].ms) };
}

function thresholds(phase) {
  const own = (metric) => `${metric}{scenario:${phase.name}}`;
  // A sub-metric is in the summary only if thresholds name it; an empty list judges nothing.
  const all = Object.fromEntries(SUMMARY.map((metric) => [metric.replace('NAME', phase.name), []]));
  // Not the planned load, not a valid run.
  all[own('dropped_iterations')] = ['count==0'];
  if (phase.once) all[own('attempts')] = [`count==${phase.value}`];
  const limits = limitsOf(phase.slo);
  for (const { tags } of limits) all[`slow{scenario:${phase.name},objective:${tags.objective}}`] = [];
  if (lateFrom(phase, limits).late_ms) all[own('late_answers')] = [];
  for (const { metric, threshold } of phase.slo.map(thresholdOf)) all[own(metric)].push(threshold);
  return all;
}

const scenarios = (plan) => Object.fromEntries([
  ...plan.phases.map((phase) => [phase.name, scenario(phase)]),
  ...Object.entries(helpers(plan)).map(([name, atMs]) => [name, helperScenario(name, atMs)]),
]);

/** The k6 options of a plan. Throws an Error of one line. */
export const optionsOf = (plan) => ({
  scenarios: scenarios(plan),
  thresholds: Object.assign({}, ...plan.phases.map(thresholds)),
  noConnectionReuse: !plan.request.keep_alive,
  discardResponseBodies: true,
  maxRedirects: 0, // the load stays on the target
  tags: { testid: plan.testid },
  // Without `url` and `error`: both can differ for every request (ports in the text).
  systemTags: ['scenario', 'name', 'method', 'status', 'proto', 'expected_response', 'error_code'],
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)', 'p(99.9)', 'count'],
});

/** What each user of a phase sends and when. It is copied for every user: keep it small. */
export function requestOf({ target, request }, phase, headers) {
  const { from, value: to, starts_ms, ends_ms } = phase;
  const limits = limitsOf(phase.slo);
  return {
    method: phase.method,
    url: (phase.url || target.url) + request.path,
    params: {
      headers: { ...headers, ...request.headers },
      tags: { name: request.path.split('?')[0] },
      timeout: phase.timeout_ms,
    },
    expect: request.expect_ranges,
    one_user_in: Math.ceil(mostUsers(phase) / BODIES),
    ...(limits.length && { slow_ms: limits[0].ms, limits }),
    ...lateFrom(phase, limits),
    ...(phase.period_ms && {
      period_ms: phase.period_ms,
      ends_ms,
      spread_starts: !phase.ramp_up_ms, // started evenly, they stay even
    }),
    ...(phase.jitter_ms && { jitter_ms: phase.jitter_ms }),
    ...(phase.loop === 'ramp' && { ramp: { from, to, starts_ms, ends_ms } }),
  };
}
