// The plan of the run: the JSON file that LAB_PLAN names, or one by hand. Checked, and with what
// follows from it: times in ms since the start of the run, a phase's way to load, its body.
import { byHand } from './byhand.js';
import { milliseconds } from './duration.js';
import { leadMs } from './poisson.js';

const SCHEMA = 1;
const STATUSES = /^(?:([2-5])xx|[2-5]\d\d)$/;
const WITH_BODY = ['POST', 'PUT', 'PATCH'];

function planIn(path) {
  const wrong = (reason) => new Error(`LAB_PLAN=${path}: ${reason}`);
  let plan;
  try {
    plan = JSON.parse(open(path));
  } catch (error) {
    throw wrong(`${error.message}; give the absolute path of a plan in JSON`);
  }
  for (const key of ['testid', 'target', 'request', 'phases', 'slo']) {
    if (!plan[key]) throw wrong(`the key "${key}" is missing`);
  }
  if (plan.schema && plan.schema !== SCHEMA) {
    throw wrong(`schema ${plan.schema}; these scripts read ${SCHEMA}: take both of one release`);
  }
  return plan;
}

// `variable` is what sets the key by hand.
function duration(phase, key, variable, fallback) {
  if (phase[key] === undefined || phase[key] === null) return fallback;
  try {
    return Math.round(milliseconds(phase[key]));
  } catch (error) {
    throw new Error(`phase "${phase.name}": ${key}: ${error.message} (${variable}=…)`);
  }
}

function checkValue({ name, kind, value, loop }) {
  const wrong = (cure) => new Error(`phase "${name}": ${value} ${kind}; give ${cure}`);
  if (kind === 'users' && !(Number.isInteger(value) && value >= 1)) {
    throw wrong('a whole number from 1 on (VUS=…)');
  }
  // A ramp may end at nothing.
  if (kind === 'rate' && !(Number.isFinite(value) && (value > 0 || (value === 0 && loop === 'ramp')))) {
    throw wrong('requests per second, a number above 0 (RATE=…)');
  }
}

function checkWhole(phase, key, least, variable) {
  const value = phase[key];
  if (value === undefined || value === null || (Number.isInteger(value) && value >= least)) return;
  throw new Error(`phase "${phase.name}": ${key} ${value}; give a whole number from ${least} on (${variable}=…)`);
}

function checkUrl({ name }, url) {
  if (/^https?:\/\/[^/\s]+$/.test(url)) return;
  throw new Error(`phase "${name}": url "${url}": give one of a server, such as http://127.0.0.1:8080 (BASE_URL=…)`);
}

function check(phase, script) {
  const { name } = phase;
  if (String(name).startsWith('spikelab-')) {
    throw new Error(`phase "${name}": names that begin with "spikelab-" are the lab's own; give another`);
  }
  if (!script.kinds[phase.kind]) {
    const known = Object.keys(script.kinds).map((kind) => `"${kind}"`).join(' and ');
    throw new Error(`phase "${name}": kind "${phase.kind}" is not for ${script.name}.js, which runs kind ${known}`);
  }
  checkValue({ ...phase, loop: script.kinds[phase.kind] });
  checkWhole(phase, 'most_users', 1, 'MOST_USERS');
  checkWhole(phase, 'body_bytes', 0, 'SIZES');
}

function body({ body_bytes: bytes }, request) {
  const generated = bytes !== undefined && bytes !== null;
  const method = generated && !WITH_BODY.includes(request.method) ? 'POST' : request.method;
  return { method, body: generated ? 'x'.repeat(bytes) : request.body || '' };
}

// The statuses that a plan means by 302 or "2xx".
function statuses(text) {
  const match = STATUSES.exec(text);
  if (!match) throw new Error(`expect "${text}": give statuses of good answers, such as 2xx or 302 (EXPECT=…)`);
  const [min, max] = match[1] ? [`${match[1]}00`, `${match[1]}99`] : [text, text];
  return { min: Number(min), max: Number(max) };
}

function requestTimeout({ timeout }) {
  const ms = milliseconds(timeout);
  if (!(ms > 0)) throw new Error('request timeout: give one above 0s (TIMEOUT=…)');
  return ms;
}

function byChance({ name, kind, arrival, jitter }, loop) {
  const wrong = (reason) => new Error(`phase "${name}": arrival ${arrival}${reason} (ARRIVAL=…)`);
  if (!arrival || arrival === 'constant') return false;
  if (arrival !== 'poisson') throw wrong(': give constant or poisson');
  if (kind !== 'rate' || loop === 'ramp') throw wrong(' belongs to the kind "rate", and to a rate that stays');
  if (jitter) throw wrong(' comes by chance without jitter: leave one of them out');
  return true;
}

function complete(phase, { request, target, slo }, script) {
  check(phase, script);
  checkUrl(phase, phase.url || target.url);
  const starts_ms = duration(phase, 'start', 'start', 0);
  const length_ms = duration(phase, 'duration', 'DURATION');
  const ramp_up_ms = duration(phase, 'ramp_up', 'RAMP_UP', 0);
  // k6's own least, in its words a list of problems.
  if (!(length_ms >= 1000)) throw new Error(`phase "${phase.name}": duration: give 1s or more (DURATION=…)`);
  if (ramp_up_ms > length_ms) {
    throw new Error(`phase "${phase.name}": ramp_up ${phase.ramp_up} is longer than its duration ${phase.duration} (RAMP_UP=…)`);
  }
  if (phase.jitter && phase.kind !== 'rate') {
    throw new Error(`phase "${phase.name}": jitter ${phase.jitter} belongs to the kind "rate" (JITTER=…)`);
  }
  const loop = script.kinds[phase.kind];
  const by_chance = byChance(phase, loop);
  const timeout_ms = requestTimeout(request);
  return {
    ...phase,
    ...body(phase, request),
    slo: phase.slo || slo,
    loop,
    by_chance,
    once: loop === 'once',
    starts_ms,
    ends_ms: starts_ms + length_ms,
    ramp_up_ms,
    period_ms: duration(phase, 'period', 'PERIOD', 0),
    jitter_ms: duration(phase, 'jitter', 'JITTER', 0),
    // A user cut off by the graceful stop would leave no trace; by its timeout it counts.
    timeout_ms: loop === 'once' ? Math.min(timeout_ms, length_ms) : timeout_ms,
  };
}

// A ramp begins where the phase before it ends, or at nothing.
function withStartingRates(phases) {
  let before = 0;
  return phases.map((phase) => {
    const from = phase.loop === 'ramp' ? before : null;
    before = phase.value;
    if (from === 0 && phase.value === 0) {
      throw new Error(`phase "${phase.name}": a ramp from 0 to 0; give requests per second (RATE=…)`);
    }
    return { ...phase, from };
  });
}

function checkNames(phases, script) {
  const names = phases.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new Error(`phase "${twice}" stands twice; give each a name of its own`);
  if (names.length === 0) throw new Error('phases: there is none; give at least one');
  if (script.one_phase && names.length > 1) {
    throw new Error(`${script.name}.js runs one phase, not ${names.length}; steady.js runs several`);
  }
}

/** The plan, ready to run with `script` (see run.js). Throws an Error of one line. */
export function readPlan(script) {
  const plan = __ENV.LAB_PLAN ? planIn(__ENV.LAB_PLAN) : byHand(script);
  checkNames(plan.phases, script);
  const phases = plan.phases.map((phase) => complete(phase, plan, script));
  phases.sort((one, other) => one.starts_ms - other.starts_ms);
  // Requests by chance are started before they are due: then the whole run starts so much later.
  const leads = phases.map((phase) => (phase.by_chance ? leadMs(phase) - phase.starts_ms : 0));
  const { keep_alive: kept = true, expect = ['2xx'] } = plan.request;
  return {
    ...plan,
    by_hand: !__ENV.LAB_PLAN,
    lead_ms: Math.max(0, ...leads),
    request: {
      ...plan.request,
      keep_alive: kept && !script.new_connections,
      expect_ranges: expect.map(statuses),
    },
    phases: withStartingRates(phases),
  };
}
