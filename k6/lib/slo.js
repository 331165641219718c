import { milliseconds } from './duration.js';

const SUCCESS = /^success\s*(>=?)\s*(\d+(?:\.\d+)?)\s*(%?)$/;
const PERCENTILE = /^p(\d+(?:[._]\d+)?)\s*(<=?)\s*(\d+(?:\.\d+)?(?:ms|s|m))$/;

// "99.9%" / 100 is 0.9990000000000001 in binary: rounded, so that exactly 99.9 % passes.
const share = (number, percent) => (percent ? Number((number / 100).toPrecision(12)) : Number(number));

function successThreshold(slo, [, operator, number, percent]) {
  const rate = share(number, percent);
  if (rate > 1) throw new Error(`slo "${slo}": success is at most 100% or 1`);
  return { metric: 'success', threshold: `rate${operator}${rate}` };
}

function percentileThreshold(slo, [, percentile, operator, limit]) {
  const number = Number(percentile.replace('_', '.'));
  if (number > 100) throw new Error(`slo "${slo}": a percentile is at most p100`);
  // Over every attempt: a trend of good answers alone would pass when there is none.
  return { metric: 'latency_with_failures', threshold: `p(${number})${operator}${milliseconds(limit)}` };
}

/**
 * The latency limits among objectives, the lowest first: { ms, inclusive, tags }. An answer that
 * takes just `ms` misses it unless it is inclusive; `tags` are those of its count of slow answers.
 */
export function limitsOf(objectives) {
  const matches = [...new Set(objectives)].map((slo) => PERCENTILE.exec(slo)).filter((match) => match);
  const limits = matches.map(([objective, , operator, limit]) => (
    { ms: milliseconds(limit), inclusive: operator === '<=', tags: { objective } }
  ));
  return limits.sort((one, other) => one.ms - other.ms);
}

/**
 * The k6 threshold that a service-level objective means, as { metric, threshold }.
 * Understood: `success >= 99.9%`, `success >= 0.999`, `p95 < 1s`, `p99 < 250ms`.
 */
export function thresholdOf(slo) {
  const success = SUCCESS.exec(slo);
  if (success) return successThreshold(slo, success);
  const percentile = PERCENTILE.exec(slo);
  if (percentile) return percentileThreshold(slo, percentile);
  throw new Error(`slo "${slo}": not understood; write it like "success >= 99.9%" or "p95 < 1s"`);
}
