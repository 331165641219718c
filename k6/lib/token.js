// A bearer token: the user's, or one that the target makes.
import http from 'k6/http';

const PATH = '/api/v1/auth/token';
// Longer than the run, so that no request fails because of its age; the target's limits.
const SPARE_SECONDS = 600;
const LONGEST_SECONDS = 86400;

function mint({ target, phases }) {
  const lastMs = Math.max(...phases.map((phase) => phase.ends_ms + phase.timeout_ms));
  const ttl = Math.min(LONGEST_SECONDS, Math.ceil(lastMs / 1000) + SPARE_SECONDS);
  const url = target.url + PATH;
  const wrong = (reason) => new Error(`no token from ${url}: ${reason}; give one (TOKEN=…) or a target that makes them`);
  const params = { tags: { name: PATH }, responseType: 'text', timeout: '10s' };
  const response = http.post(`${url}?ttl=${ttl}`, null, params);
  if (response.status !== 200) throw wrong(response.status ? `status ${response.status}` : response.error);
  const token = response.json('access_token');
  if (!token) throw wrong('the answer has no access_token');
  return token;
}

// From a file where others could read the environment. Every script comes by here, and k6 opens files
// only now: whether it can be read matters to those that need a token.
function read(file) {
  try {
    return { token: open(file).trim() };
  } catch (error) {
    return { problem: `no token: TOKEN_FILE=${file}: ${error.message || error}`.replace(/\s+/g, ' ') };
  }
}

const given = !__ENV.TOKEN && __ENV.TOKEN_FILE ? read(__ENV.TOKEN_FILE) : { token: __ENV.TOKEN };

/** The headers of an authorized request. Throws an Error of one line. */
export function authorization(plan) {
  if (given.problem) throw new Error(given.problem);
  return { Authorization: `Bearer ${given.token || mint(plan)}` };
}
