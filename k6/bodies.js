// Bodies: requests by the size of their body, a phase for each size.
//
//   k6 run k6/bodies.js -e SIZES=1kB,100kB,1MB -e RATE=50
export { user as default, boundary } from './lib/load.js';

// VU 0 alone: users load none of it (see spike.js).
const once = __VU === 0 ? require('./lib/run.js').prepare({
  name: 'bodies',
  kinds: { rate: 'open', users: 'closed' },
  defaults: { SIZES: '1kB,10kB,100kB', RATE: '50', DURATION: '30s', REQUEST_PATH: '/echo' },
}) : {};

export const { options, setup, teardown, handleSummary } = once;
