// Churn: a connection for each request, so that the rate is connections opened per second; with
// https, a full TLS handshake each.
//
//   k6 run k6/churn.js -e RATE=200
//   SSL_CERT_FILE=ca.pem k6 run k6/churn.js -e BASE_URL=https://127.0.0.1:8094
export { user as default, boundary } from './lib/load.js';

// VU 0 alone: users load none of it (see spike.js).
const once = __VU === 0 ? require('./lib/run.js').prepare({
  name: 'churn',
  kinds: { rate: 'open', users: 'closed' },
  new_connections: true,
  defaults: { RATE: '100', DURATION: '1m' },
}) : {};

export const { options, setup, teardown, handleSummary } = once;
