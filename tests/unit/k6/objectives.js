// Reads every objective of the table VECTORS with k6/lib/slo.js and lets k6 judge its examples;
// prints what was read and which thresholds held as JSON. See test_objectives.py.
import { Rate, Trend } from 'k6/metrics';

import { limitsOf, thresholdOf } from '../../../k6/lib/slo.js';

const FAILED_MS = 1e10; // as in k6/lib/attempt.js
const TABLE = JSON.parse(open(__ENV.VECTORS));
const success = new Rate('success');
const latency = new Trend('response_time_with_failures');

function read(text) {
  try {
    return { ...thresholdOf(text), limit: limitsOf([text])[0] };
  } catch (error) {
    return { error: error.message };
  }
}

const FOUND = TABLE.map(({ text }) => read(text));
const CASES = TABLE.flatMap(({ examples = [] }, index) => examples.map((example, number) => (
  { ...example, ...FOUND[index], name: `${index}-${number}` }
)));

export const options = {
  thresholds: Object.fromEntries(
    CASES.filter(({ metric }) => metric).map(({ metric, threshold, name }) => [`${metric}{case:${name}}`, [threshold]]),
  ),
};

export default function run() {
  for (const { name, good, of, seconds } of CASES) {
    for (let count = 0; count < of; count += 1) success.add(count < good, { case: name });
    if (of === undefined) latency.add(seconds === null ? FAILED_MS : seconds * 1000, { case: name });
  }
}

export function handleSummary({ metrics }) {
  const held = ({ metric, threshold, name }) => metrics[`${metric}{case:${name}}`].thresholds[threshold].ok;
  const examples = Object.fromEntries(CASES.filter(({ metric }) => metric).map((each) => [each.name, held(each)]));
  return { stdout: JSON.stringify({ found: FOUND, examples }) };
}
