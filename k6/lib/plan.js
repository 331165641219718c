// The plan of the run: the JSON file that LAB_PLAN names, or the defaults below.

const DEFAULTS = { VUS: '1000', BASE_URL: 'http://127.0.0.1:8080', INFLUXDB_URL: 'http://127.0.0.1:8086' };

const setting = (name) => (__ENV[name] === undefined ? DEFAULTS[name] : __ENV[name]);

// Sortable and unique, like the lab's own: 20261121T013000Z-k6-spike-a1b2.
function newTestid() {
  const utc = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const suffix = Math.floor(Math.random() * 0x10000).toString(16).padStart(4, '0');
  return `${utc}-k6-spike-${suffix}`;
}

function defaultPlan() {
  return {
    testid: __ENV.TESTID || newTestid(),
    target: { url: setting('BASE_URL') },
    request: { method: 'GET', path: '/hello', headers: {}, body: null, timeout: '60s', keep_alive: true },
    phases: [{ name: 'spike', kind: 'users', value: Number(setting('VUS')) || setting('VUS'), start: '0s', duration: '5m', url: null }],
    slo: ['success >= 99.9%'],
    events: { url: setting('INFLUXDB_URL'), database: 'myk6db' },
  };
}

function planIn(path) {
  try {
    return JSON.parse(open(path));
  } catch (error) {
    throw new Error(`LAB_PLAN=${path}: ${error.message}; give the absolute path of a plan in JSON`);
  }
}

/** The plan, with the keys of the lab's plan files; durations are texts such as "5m". */
export const readPlan = () => (__ENV.LAB_PLAN ? planIn(__ENV.LAB_PLAN) : defaultPlan());
