// Spike: all users at once, one request each. The run is invalid unless every user started.
//
//   k6 run k6/spike.js -e VUS=300 -e BASE_URL=http://127.0.0.1:8080
import { annotate, attempt, judged } from './lib/attempt.js';

// VU 0 reads the options and runs setup and teardown. Users load none of that: each holds a
// JavaScript runtime of its own, and these modules would double its memory.
const once = __VU === 0 ? require('./lib/run.js').prepare({
  name: 'spike',
  kinds: { users: 'once' },
  defaults: { VUS: '1000', DURATION: '5m' },
}) : {};

export const { options, setup, teardown, handleSummary } = once;

/** The one iteration of a helper scenario, where phases begin or end. */
export const boundary = (run) => annotate(JSON.parse(run.requests[__ENV.PHASE]));

export default function (run) {
  judged(attempt(JSON.parse(run.requests[__ENV.PHASE]), run.started_ms, 0).ms);
}
