// Lines over message sizes and bars over nodes, drawn by uPlot. Every figure has a sentence and a table that say the same.
const CURVES = ["--curve-1", "--curve-2", "--curve-3", "--curve-4"];
const NAMED_BARS = 12; // more bars than this have no room for their nodes' names
const OBJECT = /^(disk|phase|mount|scratch|storage|object|cache|checkpoint)\b/; // names of checks that are about storage
const FAR = 4; // a bar that is this many times the highest value is not drawn
const RATES = ["B/s", "s", "1/s"];
let charts = [];

const css = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const axis = (more) => ({ stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, font: "12px system-ui, sans-serif", ...more });

function draw(place, options, series, height) {
  const made = new uPlot({ width: Math.max(200, place.clientWidth), height, ...options }, series, place);
  charts.push({ made, place, height });
  return made;
}

function redrawCharts() {
  for (const { made } of charts) made.redraw(false, true);
  paint();
}

function resizeCharts() {
  for (const { made, place, height } of charts) if (place.clientWidth) made.setSize({ width: Math.max(200, place.clientWidth), height });
  paint();
}

// A figure: title, sentence, drawing (hidden from screen readers, which get the sentence and the table), table.
function figure(title, words, makeTable) {
  const place = el("div", { "aria-hidden": "true" });
  const made = el("div", { class: "figure", role: "group", "aria-label": title }, el("h3", null, title), el("p", { class: "quiet" }, words), place, fold("The figures as a table", makeTable));
  return { made, place };
}

// -- bus bandwidth over message size

let family = 0;

// Sweeps that differ only in their nodes are lines of one chart.
function families() {
  const found = new Map();
  for (const sweep of data.sweeps.all) {
    for (const inPlace of [0, 1]) {
      const rows = sweep.rows.filter((row) => (row[5] || (sweep.in_place ? 1 : 0)) === inPlace);
      if (!rows.length || !sweep.hosts.some((place) => matching.includes(nodes[place]))) continue;
      const title = `${sweep.op} ${sweep.dtype}${sweep.redop && sweep.redop !== "none" ? ` ${sweep.redop}` : ""}, ${plural(sweep.hosts.length, "node")}, ${plural(sweep.ranks || 0, "rank")}, ${sweep.backend}`;
      found.set(title, [...(found.get(title) || []), { sweep, rows, inPlace }]);
    }
  }
  return [...found].map(([title, curves]) => ({ title, curves }));
}

const curveName = (curve, all) => [all.some((other) => other.inPlace !== curve.inPlace) ? (curve.inPlace ? "in place" : "out of place") : "", all.some((other) => other.sweep !== curve.sweep) ? nodesOf(curve.sweep) : ""].filter(Boolean).join(", ") || "busbw";
const nodesOf = (sweep) => (sweep.hosts.length > 3 ? `${nodes[sweep.hosts[0]].name} and ${sweep.hosts.length - 1} more` : sweep.hosts.map((place) => nodes[place].name).join(", "));

function drawSweeps() {
  charts = charts.filter(({ place }) => !byId("sweeps").contains(place));
  byId("sweeps").hidden = !data.sweeps.all.length;
  if (!data.sweeps.all.length) return;
  const all = families();
  family = Math.min(family, Math.max(0, all.length - 1));
  const pick = all.length > 1 ? el("p", null, el("label", { for: "family" }, "Collective "), el("select", { id: "family", change: (event) => { family = Number(event.target.value); drawSweeps(); byId("family").focus(); } },
    ...all.map((one, at) => el("option", { value: at, selected: at === family }, one.title)))) : "";
  const left = data.sweeps.left_out ? el("p", { class: "quiet" }, `${plural(data.sweeps.left_out, "more sweep")} in events.jsonl; here they would make the page too large.`) : "";
  byId("sweeps").replaceChildren(byId("sweeps-title"), pick, left);
  if (all.length) lines(all[family]);
  else byId("sweeps").append(el("p", null, "The nodes shown took part in no sweep."));
}

function lines({ title, curves }) {
  const sizes = [...new Set(curves.flatMap(({ rows }) => rows.map((row) => row[0])))].sort((one, other) => one - other);
  const shownCurves = curves.slice(0, 50); // more lines than this are one blot; the table has them all
  const floors = [...new Set(shownCurves.map(({ sweep }) => sweep.floor).filter((floor) => floor !== null))];
  const both = curves.some((curve) => !curve.inPlace);
  const { made, place } = figure(title, curveWords(curves), () => sweepTable(curves));
  byId("sweeps").append(made);
  const columns = [sizes, ...shownCurves.map(({ rows }) => { const bySize = new Map(rows.map((row) => [row[0], row[3]])); return sizes.map((bytes) => bySize.get(bytes) ?? null); }), ...floors.map((floor) => sizes.map(() => floor))];
  const series = [
    { label: "Size", value: (_, bytes) => (bytes === null ? "" : size(bytes)) },
    ...shownCurves.map((curve, at) => ({ label: curveName(curve, curves), stroke: css(CURVES[at % 4]), width: 2, dash: curve.inPlace && both ? [7, 4] : [], points: { show: sizes.length < 60, size: 6 }, spanGaps: true, value: (_, rate) => shown(rate, "B/s") })),
    ...floors.map((floor) => ({ label: `floor ${shown(floor, "B/s")}`, stroke: css("--floor"), width: 2, dash: [3, 4], points: { show: false }, value: (_, rate) => shown(rate, "B/s") })),
  ];
  draw(place, {
    scales: { x: { time: false, distr: 3, log: 2 }, y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.08] } },
    axes: [axis({ values: (_, ticks) => ticks.map((bytes) => (bytes === null ? "" : size(bytes))), space: 70 }), axis({ size: 74, values: (_, ticks) => ticks.map((rate) => shown(rate, "B/s")) })],
    series, legend: { live: true }, cursor: { drag: { x: true, y: false } },
  }, columns, 300);
}

function curveWords(curves) {
  const rows = curves.flatMap((curve) => curve.rows.map((row) => ({ row, floor: curve.sweep.floor, source: curve.sweep.source })));
  const best = rows.reduce((one, other) => ((other.row[3] ?? -1) > (one.row[3] ?? -1) ? other : one), rows[0]);
  const wrong = rows.reduce((sum, { row }) => sum + (row[4] || 0), 0);
  const floor = rows.find((one) => one.floor !== null);
  const held = best && floor ? (best.row[3] >= floor.floor ? "reached" : "not reached") : "";
  return `Highest ${shown(best?.row[3] ?? null, "B/s") || "unknown"} at ${best ? size(best.row[0]) : "?"}. ${floor ? `Floor ${shown(floor.floor, "B/s")}, ${held}${floor.source ? ` (${floor.source})` : ""}.` : "No floor is known for it."}${wrong ? ` ${wrong} wrong values!` : ""}${[...new Set(curves.map(({ sweep }) => sweep.note).filter(Boolean))].slice(0, 3).map((note) => ` ${note}`).join("")}`;
}

const sweepTable = (curves) => table("Sweep", ["Size", "What", "#Time", "#algbw", "#busbw", "#Wrong", "Slowest rank"], curves.flatMap((curve) => curve.rows.map((row) => el("tr", null,
  el("th", { scope: "row" }, size(row[0])), el("td", null, curveName(curve, curves)),
  ...[["Time", shown(row[1], "s")], ["algbw", shown(row[2], "B/s")], ["busbw", shown(row[3], "B/s")], ["Wrong", row[4] === null ? "not checked" : String(row[4])]].map(([name, text]) => figureCell(name, text)),
  el("td", { "data-name": "Slowest rank" }, row[6] || "not known")))));

// -- storage

function storageMetrics() {
  const found = new Map();
  for (const node of matching) {
    for (const check of checksOf(node)) {
      if (typeof check.value !== "number" || !RATES.includes(check.unit) || !OBJECT.test(check.name)) continue;
      if (!found.has(check.name)) found.set(check.name, { name: check.name, unit: check.unit, bars: [], floor: null, simulated: false });
      const metric = found.get(check.name);
      metric.bars.push({ node, check });
      if (typeof check.floor === "number") metric.floor = Math.max(metric.floor ?? 0, check.floor);
      metric.simulated ||= check.simulated;
    }
  }
  const bad = (metric) => metric.bars.filter(({ check }) => check.verdict !== "pass").length;
  return [...found.values()].sort((one, other) => bad(other) - bad(one) || (one.name < other.name ? -1 : 1));
}

function drawStorage() {
  charts = charts.filter(({ place }) => !byId("storage").contains(place));
  const metrics = storageMetrics();
  byId("storage").hidden = !metrics.length;
  const grid = el("div", { class: "charts" });
  byId("storage").replaceChildren(byId("storage-title"), grid);
  for (const metric of metrics) bars(grid, metric);
}

function bars(grid, metric) {
  const many = metric.bars.length > NAMED_BARS;
  const better = metric.unit === "s" ? -1 : 1;
  const shownBars = many ? [...metric.bars].sort((one, other) => better * (one.check.value - other.check.value)) : metric.bars;
  const bad = metric.bars.filter(({ check }) => check.verdict !== "pass");
  const values = shownBars.map(({ check }) => check.value);
  const words = `${many ? `${metric.bars.length} nodes, worst first. ` : ""}${metric.floor === null ? "No floor." : `${metric.unit === "s" ? "At most" : "At least"} ${shown(metric.floor, metric.unit)}.`} ${bad.length ? `Not passed: ${bad.slice(0, 6).map(({ node }) => node.name).join(", ")}${bad.length > 6 ? ` and ${bad.length - 6} more` : ""}.` : "All passed."}${metric.simulated ? " Simulated." : ""}`;
  const { made, place } = figure(metric.name, words, () => barTable(metric.name, shownBars));
  const pointed = el("p", { class: "quiet pointed", "aria-hidden": "true" });
  place.after(pointed);
  grid.append(made);
  const told = (at) => { const bar = shownBars[at]; pointed.textContent = bar ? `${bar.node.name}: ${shown(bar.check.value, metric.unit)}, ${bar.check.verdict}` : ""; };
  // A bar far above all values (an fsync may take a second) would leave nothing of them to be seen; the sentence has it.
  const high = Math.max(...values), level = metric.floor !== null && metric.floor < FAR * high ? metric.floor : null;
  const places = shownBars.map((_, at) => at);
  draw(place, {
    scales: { x: { time: false, range: () => [-0.6, Math.max(0.6, places.length - 0.4)] }, y: { range: () => [0, Math.max(high, level ?? 0) * 1.12 || 1] } },
    axes: [axis({ grid: { show: false }, splits: () => (many ? [] : places), values: (u) => (many ? [] : shortened(u, shownBars)), size: many ? 8 : 26 }), axis({ size: 74, values: (_, ticks) => ticks.map((value) => shown(value, metric.unit)) })],
    series: [
      {},
      { fill: css("--bar"), stroke: css("--bar"), width: 1, paths: uPlot.paths.bars({ size: [0.7, 72] }), points: { show: false } },
      ...(level === null ? [] : [{ stroke: css("--floor"), width: 2, dash: [3, 4], points: { show: false }, paths: levelPath }]),
    ],
    cursor: { drag: { x: false, y: false }, y: false }, legend: { show: false }, hooks: { setCursor: [(u) => told(u.cursor.idx)] },
  }, [places, values, ...(level === null ? [] : [places.map(() => level)])], 140);
}

// The floor from edge to edge, also where there is but one bar.
function levelPath(u, seriesIdx) {
  const path = new Path2D(), level = u.valToPos(u.data[seriesIdx][0], "y", true);
  path.moveTo(u.bbox.left, level);
  path.lineTo(u.bbox.left + u.bbox.width, level);
  return { stroke: path, fill: null, flags: 0 };
}

function shortened(u, shownBars) {
  const room = Math.max(2, Math.floor(u.bbox.width / (window.devicePixelRatio || 1) / shownBars.length / 7));
  return shownBars.map(({ node }) => (node.name.length > room ? `${node.name.slice(0, room - 1)}…` : node.name));
}

const barTable = (name, shownBars) => table(name, ["Node", "Verdict", "#Value", "#Floor"], shownBars.slice(0, 200).map(({ node, check }) => el("tr", null,
  el("th", { scope: "row" }, nodeButton(node)), el("td", null, badge(check.verdict)), figureCell("Value", shown(check.value, check.unit)), figureCell("Floor", shown(check.floor, check.unit)))));
