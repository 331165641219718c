// Phases of the run as lines of InfluxDB's `events`, which dashboards draw as regions.

const tag = (value) => String(value).replace(/([,= ])/g, '\\$1');
const field = (value) => `"${String(value).replace(/(["\\])/g, '\\$1')}"`;

/** Where the plan's events are written; empty: nowhere. */
export function eventsUrl({ events }) {
  if (!events || !events.url) return '';
  return `${events.url}/write?db=${encodeURIComponent(events.database)}&precision=ms`;
}

/** A point in InfluxDB's line protocol. The same tags and time written again overwrite it. */
export function line(phase, state, endsMs, { testid, started_ms: epoch }) {
  const tags = `testid=${tag(testid)},driver=k6,phase=${tag(phase.name)}`;
  const text = `${phase.value} ${phase.kind}`;
  const fields = `title=${field(phase.name)},text=${field(text)},tags=${field(`k6,${phase.kind}`)}`;
  return `events,${tags} ${fields},state=${field(state)},timeEnd=${epoch + endsMs}i ${epoch + phase.starts_ms}`;
}
