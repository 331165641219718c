// A plan as k6's options and as what its users send.
import { helpers, helperScenario, watcher } from './boundaries.js';
import { mostUsers, scenario, scheduleOf } from './executors.js';
import { blocksOf } from './poisson.js';
import { limitsOf, thresholdOf } from './slo.js';
import { RANKS, STATISTICS, statistic } from './summary.js';

const ERROR_CLASSES = ['dial_timeout', 'request_timeout', 'reset', 'refused', 'http_4xx', 'http_5xx', 'other'];

const SUMMARY = [
  // The parts of a good answer's time: `blocked` contains connecting and TLS, `duration` the others.
  ...['duration', 'blocked', 'connecting', 'tls_handshaking', 'sending', 'waiting'].map(
    (part) => `http_req_${part}{scenario:NAME,expected_response:true}`,
  ),
  'response_time{scenario:NAME}',
  'http_req_failed{scenario:NAME}',
  'attempts{scenario:NAME}',
  'attempt_started{scenario:NAME}',
  'attempt_ended{scenario:NAME}',
  'answer_bytes{scenario:NAME}',
  ...ERROR_CLASSES.map((name) => `failures{scenario:NAME,class:${name}}`),
  'failures{scenario:NAME,answered:true}',
];

// Wrong answers that a phase shows, by as many of its users.
const BODIES = 5;

// The end of a phase, where its last answers are noted.
const ENDING_MS = 1000;

// A drain that short is the last answers' own time.
const SHORT_DRAIN_MS = 1000;

// From when on a good answer shows a queue that the phase left behind. Only a rate has due times.
function lateFrom({ kind, ends_ms, jitter_ms }, limits) {
  if (kind !== 'rate' || limits.length === 0) return {};
  return { late_ms: ends_ms + jitter_ms + Math.max(SHORT_DRAIN_MS, limits[limits.length - 1].ms) };
}

// A sub-metric is in the summary only if thresholds name it; an empty list judges nothing.
function counted(phase, limits) {
  const own = (metric, tags = '') => `${metric}{scenario:${phase.name}${tags}}`;
  const scheduled = scheduleOf(phase) !== undefined;
  return [
    ...SUMMARY.map((metric) => metric.replace('NAME', phase.name)),
    ...(scheduled ? [own('response_time_due')] : []),
    ...(phase.once ? [] : [own('answers_after_end'), own('driver_lateness')]),
    ...(lateFrom(phase, limits).late_ms ? [own('late_answers')] : []),
    ...limits.flatMap(({ objective }) => (scheduled ? ['start', 'due'] : ['start']).map(
      (since) => own('slow', `,objective:${objective},since:${since}`),
    )),
  ];
}

function thresholds(phase, byHand) {
  const own = (metric) => `${metric}{scenario:${phase.name}}`;
  const all = Object.fromEntries(counted(phase, limitsOf(phase.slo)).map((metric) => [metric, []]));
  // Not the planned load, not a valid run.
  all[own('dropped_iterations')] = ['count==0'];
  if (phase.once) all[own('attempts')] = [`count==${phase.value}`];
  const judged = phase.slo.map(thresholdOf);
  for (const { metric, threshold } of byHand ? judged : []) {
    all[own(metric)] = [...(all[own(metric)] || []), threshold];
  }
  return all;
}

const scenarios = (plan) => Object.fromEntries([
  ...plan.phases.map((phase) => [phase.name, scenario(phase, plan.lead_ms)]),
  ...Object.entries(helpers(plan)).map(([name, atMs]) => [name, helperScenario(name, plan.lead_ms + atMs)]),
  ...Object.entries(watcher(plan)),
]);

/** The k6 options of a plan. Throws an Error of one line. */
export const optionsOf = (plan) => ({
  scenarios: scenarios(plan),
  thresholds: Object.assign({}, ...plan.phases.map((phase) => thresholds(phase, plan.by_hand))),
  noConnectionReuse: !plan.request.keep_alive,
  discardResponseBodies: true,
  maxRedirects: 0, // the load stays on the target
  tags: { testid: plan.testid },
  // Without `url` and `error`: both can differ for every request (ports in the text).
  systemTags: ['scenario', 'name', 'method', 'status', 'proto', 'expected_response', 'error_code'],
  summaryTrendStats: plan.by_hand ? STATISTICS : [...new Set([...STATISTICS, ...RANKS.map(statistic)])],
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
    phase: phase.name,
    has_body: phase.body !== '',
    // The first of what is expected, and all of it.
    least: request.expect_ranges[0].min,
    most: request.expect_ranges[0].max,
    expect: request.expect_ranges,
    // Of a spike all, as its end is not known.
    ending_ms: phase.once ? 0 : ends_ms - ENDING_MS,
    window_ms: ends_ms + phase.jitter_ms,
    one_user_in: Math.ceil(mostUsers(phase) / BODIES),
    ...(limits.length && { slow_ms: limits[0].ms, limits }),
    ...lateFrom(phase, limits),
    ...(phase.period_ms && {
      period_ms: phase.period_ms,
      ends_ms,
      spread_starts: !phase.ramp_up_ms, // started evenly, they stay even
    }),
    ...(phase.jitter_ms && { jitter_ms: phase.jitter_ms }),
    timed: phase.kind === 'rate' || phase.period_ms > 0,
    schedule: scheduleOf(phase),
    ...(phase.by_chance && { blocks: blocksOf(phase) }),
    ...(phase.loop === 'ramp' && { ramp: { from, to, starts_ms, ends_ms } }),
  };
}
