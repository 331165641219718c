// Objectives as k6's thresholds. The grammar is the lab's: tests/data/objectives.json.
import { milliseconds } from './duration.js';

const SUCCESS = /^success\s*(>=?)\s*(\d+(?:\.\d+)?)\s*(%?)$/;
const LATENCY = /^p(50|90|95|99|99\.9)\s*(<=?)\s*(\d+(?:\.\d+)?(?:ms|s|m))$/;
const LONGEST_MS = milliseconds('24h');

// "99.9%" / 100 is 0.9990000000000001 in binary: rounded, so that exactly 99.9 % passes.
const share = (number, percent) => (percent ? Number((number / 100).toPrecision(12)) : Number(number));

function successThreshold(slo, [, operator, number, percent]) {
  const rate = share(number, percent);
  if (rate > 1) throw new Error(`slo "${slo}": success is at most 100% or 1`);
  return { metric: 'success', threshold: `rate${operator}${rate}` };
}

function latencyThreshold(slo, [, percentile, operator, limit]) {
  const ms = milliseconds(limit);
  if (ms > LONGEST_MS) throw new Error(`slo "${slo}": a limit is at most a day`);
  // Over every attempt: a trend of good answers alone would pass when there is none.
  return { metric: 'response_time_with_failures', threshold: `p(${percentile})${operator}${ms}` };
}

/**
 * The latency limits among objectives, the lowest first: { ms, inclusive, objective }. An answer that
 * takes just `ms` misses it unless it is inclusive.
 */
export function limitsOf(objectives) {
  const matches = [...new Set(objectives)].map((slo) => LATENCY.exec(slo)).filter((match) => match);
  const limits = matches.map(([objective, , operator, limit]) => (
    { ms: milliseconds(limit), inclusive: operator === '<=', objective }
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
  const latency = LATENCY.exec(slo);
  if (latency) return latencyThreshold(slo, latency);
  throw new Error(`slo "${slo}": not understood; write it like "success >= 99.9%" or "p95 < 1s"`);
}
