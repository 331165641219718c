// The shape most published spike tests have: constant-vus for one second, then a long
// graceful stop, raw samples into InfluxDB. It runs against the lab's stack as it stands:
//
//   k6 run --out influxdb=http://localhost:8086/myk6db k6/examples/published-spike-test.js
import http from 'k6/http';

const BASE_URL = __ENV.BASE_URL || 'http://localhost:8080';

export const options = {
  scenarios: {
    spike: { executor: 'constant-vus', vus: 300, duration: '1s', gracefulStop: '5m' },
  },
};

export default function () {
  http.get(`${BASE_URL}/hello`);
}
