// Step: one rate, as a sweep or a search for capacity runs one after another.
//
//   k6 run k6/step.js -e RATE=500
export { user as default, boundary } from './lib/load.js';

// VU 0 alone: users load none of it (see spike.js).
const once = __VU === 0 ? require('./lib/run.js').prepare({
  name: 'step',
  kinds: { rate: 'open' },
  one_phase: true,
  defaults: { RATE: '100', DURATION: '30s' },
}) : {};

export const { options, setup, teardown, handleSummary } = once;
