// Ramp: the rate changes evenly over each phase, from that of the phase before (or 0) to its own.
//
//   k6 run k6/ramp.js -e RATE=500 -e DURATION=2m
//   k6 run k6/ramp.js -e RATE=500,0 -e DURATION=1m
export { user as default, boundary } from './lib/load.js';

// VU 0 alone: users load none of it (see spike.js).
const once = __VU === 0 ? require('./lib/run.js').prepare({
  name: 'ramp',
  kinds: { rate: 'ramp' },
  defaults: { RATE: '200', DURATION: '1m' },
}) : {};

export const { options, setup, teardown, handleSummary } = once;
