// Phases of the run as points of InfluxDB's `events`, which dashboards draw as regions.
// They are a courtesy: a store that is down or wrong costs one warning and at most a second.
import http from 'k6/http';

import { milliseconds } from './duration.js';

const PARAMS = {
  tags: { name: 'spikelab-event' }, // left out of rules, summaries and dashboards by this name
  timeout: '1s',
  responseCallback: null, // never a failed request of the test
  responseType: 'none',
};

const tag = (value) => String(value).replace(/([,= ])/g, '\\$1');
const field = (value) => `"${String(value).replace(/(["\\])/g, '\\$1')}"`;

// InfluxDB's line protocol. The same tags and time written again overwrite the point.
function line({ testid, phase, startedMs, endsMs, state }) {
  const tags = `testid=${tag(testid)},driver=k6,phase=${tag(phase.name)}`;
  const text = `${phase.value} ${phase.kind}`;
  const fields = `title=${field(phase.name)},text=${field(text)},tags=${field(`k6,${phase.kind}`)}`;
  return `events,${tags} ${fields},state=${field(state)},timeEnd=${endsMs}i ${startedMs}`;
}

function write(store, lines) {
  const url = `${store.url}/write?db=${encodeURIComponent(store.database)}&precision=ms`;
  try {
    const response = http.post(url, lines.join('\n'), PARAMS);
    if (response.status === 204) return true;
    // k6 itself warns, with the reason, where there was no answer.
    if (response.status) console.warn(`phase not annotated: ${url} answered ${response.status}`);
  } catch (error) { // --throw makes an error of every failed request
    console.warn(`phase not annotated: ${error.message}`);
  }
  return false;
}

const starts = (phase, run) => run.started_ms + milliseconds(phase.start);
const planned = (phase, run) => starts(phase, run) + milliseconds(phase.duration);

/** Opens a region per phase with its planned end; true if they were stored. */
export function openPhases(plan, run) {
  if (!plan.events || !plan.events.url) return false;
  return write(plan.events, plan.phases.map((phase) => line({
    testid: run.testid, phase, startedMs: starts(phase, run), endsMs: planned(phase, run), state: 'open',
  })));
}

/** Gives the regions their real end; the last phase ends now. */
export function closePhases(plan, run) {
  const now = Date.now();
  const last = plan.phases.length - 1;
  return write(plan.events, plan.phases.map((phase, index) => line({
    testid: run.testid,
    phase,
    startedMs: starts(phase, run),
    endsMs: index === last ? now : Math.min(now, planned(phase, run)),
    state: 'closed',
  })));
}
