const UNIT_MS = { ms: 1, s: 1000, m: 60 * 1000, h: 60 * 60 * 1000 };

/** Milliseconds of a duration such as "250ms", "1.5s" or "1m30s". */
export function milliseconds(text) {
  const parts = [...String(text).matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== text) {
    throw new Error(`duration "${text}": write a number with a unit, such as 250ms, 60s or 1m30s`);
  }
  return parts.reduce((sum, part) => sum + Number(part[1]) * UNIT_MS[part[2]], 0);
}
