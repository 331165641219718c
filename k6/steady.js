// Steady: phases at a fixed arrival rate (open loop) or with fixed users (closed loop), one after
// the other or at once.
//
//   k6 run k6/steady.js -e RATE=200,300 -e DURATION=30s
//   k6 run k6/steady.js -e VUS=100 -e PERIOD=1s -e RAMP_UP=10s
export { user as default, boundary } from './lib/load.js';

// VU 0 alone: users load none of it (see spike.js).
const once = __VU === 0 ? require('./lib/run.js').prepare({
  name: 'steady',
  kinds: { rate: 'open', users: 'closed' },
  defaults: { RATE: '100', DURATION: '1m' },
}) : {};

export const { options, setup, teardown, handleSummary } = once;
