// A run by hand: its plan from environment variables and from what the script has as defaults.
import { milliseconds } from './duration.js';

const DEFAULTS = {
  BASE_URL: 'http://127.0.0.1:8080',
  INFLUXDB_URL: 'http://127.0.0.1:8086',
  REQUEST_PATH: '/hello',
  TIMEOUT: '60s',
  EXPECT: '2xx',
  SLO: 'success >= 99.9%',
};

// Which variables say how a kind's load looks, the load itself first.
const OF_KIND = { users: ['VUS', 'PERIOD', 'RAMP_UP'], rate: ['RATE', 'MOST_USERS', 'JITTER', 'ARRIVAL'] };

const SIZE = /^(\d+(?:\.\d+)?)(B|kB|KiB|MB|MiB)$/;
const UNIT_BYTES = { B: 1, kB: 1000, KiB: 1024, MB: 1e6, MiB: 1024 * 1024 };

// Sortable and unique, like the lab's own: 20261121T013000Z-k6-spike-a1b2.
function newTestid(script) {
  const utc = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const suffix = Math.floor(Math.random() * 0x10000).toString(16).padStart(4, '0');
  return `${utc}-k6-${script}-${suffix}`;
}

const number = (text) => (text === undefined ? null : Number(text) || (text === '0' ? 0 : text));

const list = (text) => text.split(',').map((item) => item.trim()).filter((item) => item);

// Of two kinds the user's variable decides, then the script's default.
function kindOf(script, defaults) {
  const kinds = Object.keys(OF_KIND);
  const given = kinds.filter((kind) => __ENV[OF_KIND[kind][0]]);
  if (given.length > 1) throw new Error('VUS and RATE: give one, VUS for a closed loop or RATE for an open one');
  const kind = given[0] || kinds.find((each) => defaults[OF_KIND[each][0]]);
  const strays = kinds.filter((each) => each !== kind).flatMap((each) => OF_KIND[each]);
  const stray = strays.find((name) => __ENV[name]);
  if (stray) throw new Error(`${stray}=${__ENV[stray]}: is of no use here; it belongs to ${strays[0]}=…`);
  if (!script.kinds[kind]) {
    throw new Error(`${OF_KIND[kind][0]}=…: ${script.name}.js does not run kind "${kind}"; steady.js does`);
  }
  return kind;
}

function bytesOf(size) {
  const match = SIZE.exec(size);
  if (!match) throw new Error(`SIZES: "${size}" is no size; write it like 500B, 10kB, 64KiB or 1MB`);
  return Math.round(Number(match[1]) * UNIT_BYTES[match[2]]);
}

function durationOf(setting, name) {
  try {
    return milliseconds(setting(name));
  } catch (error) {
    throw new Error(`${name}: ${error.message}`);
  }
}

// One phase for each value, or for each value and size of body, one after the other.
function phases(script, setting) {
  const kind = kindOf(script, script.defaults);
  const values = list(setting(OF_KIND[kind][0]));
  const sizes = setting('SIZES') ? list(setting('SIZES')) : [null];
  const loads = values.flatMap((value) => sizes.map((size) => ({ value, size })));
  const length_ms = durationOf(setting, 'DURATION');
  const name = ({ value, size }) => [
    script.name,
    ...(values.length > 1 ? [value.replace('.', '-')] : []),
    ...(size ? [size.toLowerCase().replace('.', '-')] : []),
  ].join('-');
  return loads.map((load, index) => ({
    name: name(load),
    kind,
    value: number(load.value),
    start: `${index * length_ms}ms`,
    duration: setting('DURATION'),
    url: null,
    body_bytes: load.size ? bytesOf(load.size) : null,
    ramp_up: kind === 'users' ? setting('RAMP_UP') : null,
    period: kind === 'users' ? setting('PERIOD') : null,
    most_users: kind === 'rate' ? number(setting('MOST_USERS')) : null,
    jitter: kind === 'rate' ? setting('JITTER') : null,
    arrival: kind === 'rate' ? setting('ARRIVAL') : null,
  }));
}

/** The plan of a run by hand. Throws an Error of one line. */
export function byHand(script) {
  const all = { ...DEFAULTS, ...script.defaults };
  const setting = (name) => __ENV[name] || all[name];
  const timeout = `${durationOf(setting, 'TIMEOUT')}ms`;
  const path = setting('REQUEST_PATH') + (__ENV.MS ? `?ms=${__ENV.MS}` : '');
  return {
    testid: __ENV.TESTID || newTestid(script.name),
    target: { url: setting('BASE_URL').replace(/\/$/, '') },
    request: {
      method: 'GET', path, headers: {}, body: null, timeout, keep_alive: true, expect: list(setting('EXPECT')),
    },
    phases: phases(script, setting),
    slo: list(setting('SLO')),
    // Empty: nowhere.
    events: { url: __ENV.INFLUXDB_URL === undefined ? all.INFLUXDB_URL : __ENV.INFLUXDB_URL, database: 'myk6db' },
  };
}
