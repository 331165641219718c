// What the lab reads of a run: counts and times of its phases, at fine ranks. k6's own summary of so
// many ranks could not be read, so the log gets a line for each phase instead.

/** What k6's summary of a run by hand says of times. */
export const STATISTICS = ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)', 'p(99.9)', 'count'];

const steps = (first, last, step) => (
  Array.from({ length: Math.round((last - first) / step) + 1 }, (_, index) => Number((first + index * step).toFixed(4)))
);

/** Percent of the good answers, the fastest first: as in spikelab/statistics/distribution.py. */
export const RANKS = [...steps(0, 99, 0.5), ...steps(99.05, 99.9, 0.05), ...steps(99.905, 99.99, 0.005), 100];

/** Under what name k6 has the time at such a rank. */
export const statistic = (percent) => `p(${percent})`;

// Response times with their distribution.
function figures([name, { type, values }]) {
  if (type !== 'trend') return [name, values];
  const printed = Object.fromEntries(STATISTICS.map((each) => [each, values[each]]));
  const ranked = name.startsWith('response_time') && RANKS.map((percent) => values[statistic(percent)]);
  return [name, { ...printed, ...(ranked && { ranked }) }];
}

function line({ name }, metrics) {
  const of = (metric) => metrics[`${metric}{scenario:${name}}`].values;
  const times = of('response_time');
  const ms = (percent) => `p${percent} ${times[statistic(percent)].toFixed(2)}`;
  const counts = `${of('attempts').count} requests, ${of('http_req_failed').passes} failed, ${of('dropped_iterations').count} dropped`;
  return `${name}: ${counts}; response time in ms: ${[50, 95, 99, 99.9].map(ms).join(', ')}, max ${times.max.toFixed(2)}`;
}

/** What k6 writes at the end: the plan's summary file, and lines for the log. */
export function summaryOf(plan, { metrics, setup_data: run }) {
  // A run that never began has nothing to say.
  if (!run) return {};
  const own = Object.entries(metrics).filter(([name]) => name.includes('{scenario:'));
  const document = {
    started_ms: run.started_ms,
    ranks: RANKS.map((percent) => Number((percent / 100).toFixed(6))),
    metrics: Object.fromEntries(own.map(figures)),
  };
  return {
    [plan.summary]: JSON.stringify(document),
    stdout: `\n${plan.phases.map((phase) => line(phase, metrics)).join('\n')}\n`,
  };
}
