// Prints as JSON what k6/lib states and the lab and Locust's scripts state as well: durations
// (VECTORS), a phase's event, the plan of a run by hand, ranks of the distribution. See ../drivers/test_shared_facts.py.
import { byHand } from '../../../k6/lib/byhand.js';
import { milliseconds } from '../../../k6/lib/duration.js';
import { line } from '../../../k6/lib/events.js';
import { RANKS } from '../../../k6/lib/summary.js';

function read({ text }) {
  try {
    return { seconds: milliseconds(text) / 1000 };
  } catch (error) {
    return { error: error.message };
  }
}

const PHASES = JSON.parse(__ENV.PHASES);
const SCRIPT = { name: 'steady', kinds: { rate: 'open' }, defaults: { RATE: '5', DURATION: '1s' } };
const FACTS = {
  durations: JSON.parse(open(__ENV.VECTORS)).map(read),
  events: PHASES.map((phase) => line(phase, 'closed', 9000, { testid: 't1', started_ms: 1000 })),
  byHand: byHand(SCRIPT),
  ranks: RANKS,
};

export default function run() {}

export const handleSummary = () => ({ stdout: JSON.stringify(FACTS) });
