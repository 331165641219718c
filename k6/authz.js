// Authorization: requests with a bearer token, TOKEN or one that the target makes for the run.
//
//   k6 run k6/authz.js -e VUS=2500 -e RAMP_UP=10s -e PERIOD=1.6s
//   k6 run k6/authz.js -e RATE=500 -e TOKEN=…
export { user as default, boundary } from './lib/load.js';

// VU 0 alone: users load none of it (see spike.js).
const once = __VU === 0 ? require('./lib/run.js').prepare({
  name: 'authz',
  kinds: { rate: 'open', users: 'closed' },
  authorized: true,
  defaults: { VUS: '100', RAMP_UP: '10s', PERIOD: '1.6s', DURATION: '1m', REQUEST_PATH: '/api/v1/authz/ping' },
}) : {};

export const { options, setup, teardown, handleSummary } = once;
