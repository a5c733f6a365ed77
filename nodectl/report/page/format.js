const VERDICTS = ["none", "pass", "skipped", "unknown", "fail"];
const SIGNS = { none: "·", pass: "✓", skipped: "⊘", unknown: "?", fail: "✕" };
const kindOf = (word) => (VERDICTS.includes(word) ? word : word === "stopped" ? "unknown" : word === "done" ? "pass" : "fail");

// Four digits and an SI prefix: 642.2 M
function scaled(value) {
  const size = Math.abs(value);
  for (const [factor, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (size >= factor) return `${+(value / factor).toPrecision(4)} ${prefix}`;
  return `${+value.toPrecision(4)} `;
}

function seconds(value) {
  const size = Math.abs(value);
  if (size >= 1 || size === 0) return `${+value.toPrecision(3)} s`;
  return size >= 1e-3 ? `${+(value * 1e3).toPrecision(3)} ms` : `${+(value * 1e6).toPrecision(3)} µs`;
}

// A measured value in its base unit, as a person reads it.
function shown(value, unit) {
  if (value === null || value === undefined || value === "") return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (unit === "B/s" || unit === "B") return scaled(value) + unit;
  if (unit === "s") return seconds(value);
  if (unit === "1/s") return `${scaled(value).trim()}/s`;
  if (!unit || unit === "count" || unit === "text") return String(value);
  return `${value} ${unit}`;
}

// Message sizes are powers of two.
function size(bytes) {
  for (const [factor, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) if (bytes >= factor) return `${+(bytes / factor).toPrecision(4)} ${name}`;
  return `${bytes} B`;
}

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function median(sorted) {
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
