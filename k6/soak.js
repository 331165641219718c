// Soak: a moderate load for long, which shows what grows: memory, handles, connections, queues.
//
//   k6 run k6/soak.js -e RATE=50 -e DURATION=8h
export { user as default, boundary } from './lib/load.js';

// VU 0 alone: users load none of it (see spike.js).
const once = __VU === 0 ? require('./lib/run.js').prepare({
  name: 'soak',
  kinds: { rate: 'open', users: 'closed' },
  defaults: { RATE: '50', DURATION: '1h' },
}) : {};

export const { options, setup, teardown, handleSummary } = once;
