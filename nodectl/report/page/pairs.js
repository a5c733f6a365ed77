// Pairs of nodes: a matrix for the eye, and beside it the slowest pairs as a table, which says the same in words.
const STEPS = 65533, FAILED = 65534, NOT_MEASURED = 65535; // as report/page_pairs.py packs them
const SLOW = 0.8; // below this part of a good pair's figure a pair is marked: runs on one healthy link differ by less
const WORST = 12; // rows of the table
const SOUND = 0.9; // from here on a pair has the colour of a good one: what differs less is noise
const LABELLED = 40; // more rows than this leave no room for names
const NAME_FONT = "12px system-ui, sans-serif";
const heat = { layer: 0, matrix: null, row: 0, column: 0, drawn: null };

function numbersOf(packed) {
  const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Uint16Array.from({ length: bytes.length / 2 }, (_, at) => view.getUint16(2 * at, true));
}

function unpackLayer(layer) {
  const count = nodes.length, matrix = new Uint16Array(count * count).fill(NOT_MEASURED);
  if (layer.triples !== undefined) {
    const numbers = numbersOf(layer.triples);
    for (let at = 0; at < numbers.length; at += 3) matrix[numbers[at] * count + numbers[at + 1]] = numbers[at + 2];
  } else {
    const numbers = numbersOf(layer.square ?? layer.triangle);
    let at = 0;
    for (let row = 0; row < count; row++) for (let column = layer.square === undefined ? row + 1 : 0; column < count; column++) matrix[row * count + column] = numbers[at++];
  }
  return matrix;
}

// The step of a cell; a pair measured in one direction only, or without one, stands on both sides of the diagonal.
function stepOf(row, column) {
  const step = heat.matrix[row * nodes.length + column];
  return step === NOT_MEASURED ? heat.matrix[column * nodes.length + row] : step;
}

const layerNow = () => data.pairs[heat.layer];
const valueOf = (step) => (step * layerNow().top) / STEPS;
const slower = () => layerNow().unit === "s";

// 1 is what a good pair of this fleet has, less is worse.
function ratioOf(step) {
  const value = valueOf(step);
  return heat.usual > 0 && value > 0 ? (slower() ? heat.usual / value : value / heat.usual) : 0;
}

// The median of the nodes' best pairs: one bad node spoils a pair of every other node, but not their best.
function usualOf(matrix) {
  const count = nodes.length, best = new Array(count).fill(null);
  const better = (one, other) => (one === null ? other : slower() ? Math.min(one, other) : Math.max(one, other));
  for (let row = 0; row < count; row++) {
    for (let column = 0; column < count; column++) {
      const step = matrix[row * count + column];
      if (step < FAILED) { best[row] = better(best[row], step); best[column] = better(best[column], step); }
    }
  }
  const steps = best.filter((step) => step !== null).sort((one, other) => one - other);
  return steps.length ? valueOf(median(steps)) : 0;
}

function drawPairs() {
  byId("pairs").hidden = !data.pairs.length;
  if (!data.pairs.length) return;
  heat.matrix = unpackLayer(layerNow());
  heat.usual = usualOf(heat.matrix);
  const pick = data.pairs.length > 1 ? el("p", null, el("label", { for: "layer" }, "Measured with "), el("select", { id: "layer", change: (event) => { heat.layer = Number(event.target.value); drawPairs(); } },
    ...data.pairs.map((layer, at) => el("option", { value: at, selected: at === heat.layer }, layerName(layer))))) : "";
  const canvas = el("canvas", { class: "matrix", id: "matrix", tabindex: "0", role: "application", "aria-roledescription": "matrix", "aria-describedby": "matrix-help",
    keydown: heatKey, pointermove: heatPoint, click: (event) => { heatPoint(event); openRow(); } });
  byId("pairs").replaceChildren(byId("pairs-title"), pick, el("p", { class: "quiet", id: "pairs-about" }), legend(), canvas,
    el("p", { id: "matrix-cell", class: "quiet pointed", "aria-live": "polite" }),
    el("p", { class: "quiet", id: "matrix-help" }, "Point at a cell to read it, click to open its row's node. With the keyboard: arrow keys move, Enter opens."), el("div", { id: "worst-pairs" }));
  refreshPairs();
}

const layerName = (layer) => `${layer.tool || "unknown tool"}${layer.rail ? `, rail ${layer.rail}` : ""}${layer.bytes ? `, ${size(layer.bytes)}` : ""}`;

function legend() {
  const entries = [["good", "a good pair"], ["bad", "40 % of a good pair or less; a stroke marks those below 80 %"], ["failed", "failed (×)"], ["missing", "not measured"]];
  return el("ul", { class: "legend" }, ...entries.map(([kind, words]) => el("li", null, el("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), ` ${words}`)));
}

// Rows are the nodes that the filter leaves, columns are all: one node alone still shows all its pairs.
function refreshPairs() {
  if (!data.pairs.length) return;
  const worst = worstPairs();
  const layer = layerNow();
  const about = `${layerName(layer)}: ${plural(worst.measured, "pair")} measured, a good pair has ${shown(heat.usual, layer.unit)} (median of the nodes' best)${worst.failed ? `, ${worst.failed} failed` : ""}${worst.slow ? `, ${worst.slow} below ${SLOW * 100} % of that` : ""}.`;
  byId("pairs-about").textContent = about;
  byId("matrix").setAttribute("aria-label", `Matrix of pairs. ${about}`);
  heat.row = heat.column = 0;
  paint();
  const rows = worst.list.map(pairRow);
  byId("worst-pairs").replaceChildren(culprits(worst.ofNode), rows.length ? table(`${slower() ? "Highest" : "Slowest"} pairs first (${rows.length} of ${worst.measured + worst.failed})`, ["Pair", slower() ? "#Latency" : "#Bandwidth", "#Of a good pair"], rows) : el("p", null, "No pair of these nodes was measured."));
}

function worstPairs() {
  const found = { list: [], measured: 0, failed: 0, slow: 0, ofNode: new Map() };
  const kept = new Set(matching.map((node) => node.place)), count = nodes.length, candidates = [];
  for (let row = 0; row < count; row++) {
    for (let column = 0; column < count; column++) {
      const step = heat.matrix[row * count + column];
      if (step === NOT_MEASURED || !(kept.has(row) || kept.has(column))) continue;
      const ratio = step === FAILED ? -1 : ratioOf(step);
      if (step === FAILED) found.failed++; else found.measured++;
      if (step !== FAILED && ratio < SLOW) found.slow++;
      for (const place of [row, column]) {
        const counts = found.ofNode.get(place) || [0, 0];
        found.ofNode.set(place, [counts[0] + (ratio < SLOW ? 1 : 0), counts[1] + 1]);
      }
      if (candidates.length < WORST || ratio < candidates[candidates.length - 1].ratio) keep(candidates, { row, column, step, ratio });
    }
  }
  found.list = candidates;
  return found;
}

// A node most of whose pairs are slow is itself the likely cause; one slow pair between good nodes is a path.
function culprits(ofNode) {
  const found = [...ofNode].filter(([, [slow, all]]) => slow > all / 2).sort((one, other) => other[1][0] / other[1][1] - one[1][0] / one[1][1] || other[1][0] - one[1][0]);
  if (!found.length) return "";
  const shownOnes = found.slice(0, WORST).flatMap(([place, [slow, all]], at) => [at ? ", " : "", nodeButton(nodes[place]), ` (${slow} of ${all})`]);
  return el("p", null, "Most of its pairs are slow: ", ...shownOnes, found.length > WORST ? ` and ${found.length - WORST} more` : "");
}

function keep(list, found) {
  let at = list.findIndex((other) => other.ratio > found.ratio);
  if (at < 0) at = list.length;
  list.splice(at, 0, found);
  if (list.length > WORST) list.pop();
}

const errorOf = (row, column) => (layerNow().errors.find(([one, other]) => (one === row && other === column) || (one === column && other === row)) || [])[2] || "failed";

function pairRow({ row, column, step, ratio }) {
  const failed = step === FAILED;
  const mark = failed ? "✕ " : ratio < SLOW ? "╱ " : "";
  return el("tr", null,
    el("th", { scope: "row" }, nodeButton(nodes[row]), " ↔ ", nodeButton(nodes[column])),
    figureCell(slower() ? "Latency" : "Bandwidth", failed ? errorOf(row, column) : shown(valueOf(step), layerNow().unit)),
    figureCell("Of a good pair", failed ? `${mark}failed` : `${mark}${Math.round((valueOf(step) / heat.usual) * 100)} %`));
}

function colour(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

// Several cells fall on one point where there are more nodes than points: the worst of them is shown.
function grid(rows, columns, width, height) {
  const found = new Float32Array(width * height).fill(9); // 9: nothing measured; -1: failed; else the ratio
  for (let row = 0; row < rows.length; row++) {
    const down = Math.floor((row * height) / rows.length) * width;
    for (let column = 0; column < columns.length; column++) {
      const step = rows[row].place === columns[column].place ? NOT_MEASURED : stepOf(rows[row].place, columns[column].place);
      if (step === NOT_MEASURED) continue;
      const at = down + Math.floor((column * width) / columns.length);
      found[at] = Math.min(found[at], step === FAILED ? -1 : Math.min(2, ratioOf(step)));
    }
  }
  return found;
}

function tint(ratios, image) {
  const [good, bad, failed, none] = ["--heat-good", "--heat-bad", "--heat-failed", "--heat-none"].map(colour);
  ratios.forEach((ratio, at) => {
    const part = Math.max(0, Math.min(1, (SOUND - ratio) / (SOUND - 0.4)));
    const rgb = ratio === 9 ? none : ratio < 0 ? failed : good.map((value, band) => value + (bad[band] - value) * part);
    image.data.set([...rgb, 255], 4 * at);
  });
}

function paint() {
  const canvas = byId("matrix");
  if (!canvas || !matching.length) return;
  const room = Math.min(byId("pairs").clientWidth, 720), named = Math.max(matching.length, nodes.length) <= LABELLED;
  const pen = canvas.getContext("2d");
  pen.font = NAME_FONT;
  const left = named ? Math.min(Math.max(...matching.map((node) => pen.measureText(node.name).width)) + 8, room / 3) : 0, top = named ? 18 : 0;
  const cell = Math.min(64, (room - left) / nodes.length), wide = cell * nodes.length;
  // Few rows of many columns would be a line of one point.
  const tall = Math.max(12, Math.min(cell < 2 ? Math.max(cell, 2) : cell, 64)) >= 12 && matching.length * cell < 12 ? 12 : cell * matching.length;
  const dots = window.devicePixelRatio || 1;
  canvas.width = (left + wide) * dots; canvas.height = (top + tall) * dots;
  canvas.style.width = `${left + wide}px`; canvas.style.height = `${top + tall}px`;
  pen.scale(dots, dots);
  const width = Math.min(nodes.length, Math.floor(wide * dots)), height = Math.min(matching.length, Math.max(1, Math.floor(tall * dots)));
  const ratios = grid(matching, nodes, width, height);
  const small = el("canvas", { width, height }), image = small.getContext("2d").createImageData(width, height);
  tint(ratios, image);
  small.getContext("2d").putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, left, top, wide, tall);
  heat.drawn = { left, top, wide, tall };
  if (cell >= 9) marks(pen, ratios, cell, left, top);
  if (named) names(pen, cell, left, top);
}

// Strokes and crosses: colour is never the only sign.
function marks(pen, ratios, cell, left, top) {
  const style = getComputedStyle(document.documentElement);
  matching.forEach((_, row) => nodes.forEach((_, column) => {
    const ratio = ratios[row * nodes.length + column], x = left + column * cell, y = top + row * cell, gap = cell / 4;
    pen.strokeStyle = style.getPropertyValue("--bg");
    pen.lineWidth = 1;
    pen.strokeRect(x, y, cell, cell);
    if (ratio >= SLOW) return;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x + gap, y + cell - gap); pen.lineTo(x + cell - gap, y + gap);
    if (ratio < 0) { pen.moveTo(x + gap, y + gap); pen.lineTo(x + cell - gap, y + cell - gap); }
    pen.stroke();
  }));
}

function names(pen, cell, left, top) {
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
  pen.font = NAME_FONT;
  pen.textBaseline = "middle";
  if (cell >= 10) matching.forEach((node, row) => pen.fillText(fitted(pen, node.name, left - 6), 0, top + (row + 0.5) * cell));
  if (cell >= 26) nodes.forEach((node, column) => pen.fillText(fitted(pen, node.name, cell - 3), left + column * cell + 1, top / 2));
}

function fitted(pen, text, room) {
  let shownText = text;
  while (shownText.length > 1 && pen.measureText(shownText).width > room) shownText = shownText.slice(0, -1);
  return shownText;
}

function tellCell() {
  const row = matching[heat.row], column = nodes[heat.column];
  if (!row || !column) return;
  const step = row.place === column.place ? NOT_MEASURED : stepOf(row.place, column.place);
  const words = step === NOT_MEASURED ? "not measured" : step === FAILED ? errorOf(row.place, column.place)
    : `${shown(valueOf(step), layerNow().unit)}, ${Math.round((valueOf(step) / heat.usual) * 100)} % of a good pair`;
  byId("matrix-cell").textContent = `${row.name} ↔ ${column.name}: ${words}`;
}

function heatPoint(event) {
  const { left, top, wide, tall } = heat.drawn;
  const row = Math.floor(((event.offsetY - top) / tall) * matching.length), column = Math.floor(((event.offsetX - left) / wide) * nodes.length);
  if (row < 0 || column < 0 || row >= matching.length || column >= nodes.length) return;
  heat.row = row; heat.column = column;
  tellCell();
}

const openRow = () => { if (matching[heat.row]) choose(matching[heat.row]); };

function heatKey(event) {
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (event.key === "Enter") openRow();
  else if (moves[event.key] && !event.ctrlKey && !event.altKey && !event.metaKey) {
    heat.row = Math.max(0, Math.min(matching.length - 1, heat.row + moves[event.key][0]));
    heat.column = Math.max(0, Math.min(nodes.length - 1, heat.column + moves[event.key][1]));
    tellCell();
  } else return;
  event.preventDefault();
}
