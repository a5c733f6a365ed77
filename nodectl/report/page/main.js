// Puts the page together, and keeps it in step with the filter, the address and the window.
const wantedVerdicts = new Set(["fail", "unknown", "skipped", "pass", "none"]);

function verdictBoxes() {
  const counts = new Map();
  for (const node of nodes) counts.set(node.kind, (counts.get(node.kind) || 0) + 1);
  const words = ["fail", "unknown", "skipped", "pass", "none"].filter((word) => counts.get(word));
  byId("verdicts").replaceChildren(...words.map((word) => el("label", null,
    el("input", { type: "checkbox", checked: true, value: word, change: (event) => { wantedVerdicts[event.target.checked ? "add" : "delete"](word); filter(); } }),
    el("span", { "aria-hidden": "true" }, SIGNS[word]), ` ${word === "none" ? "not verified" : word} (${counts.get(word)})`)));
}

function filter() {
  const terms = byId("terms").value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  matching = nodes.filter((node) => wantedVerdicts.has(node.kind) && (!terms.length || terms.some((term) => node.name.toLowerCase().includes(term))));
  const words = matching.length === nodes.length ? plural(nodes.length, "node") : `${matching.length} of ${plural(nodes.length, "node")}`;
  byId("shown").textContent = words;
  say(`${words} shown`);
  filterRack();
  drawChecks();
  refreshPairs();
  drawSweeps();
  drawStorage();
  if (terms.length && matching.length === 1) choose(matching[0], true);
}

function later(act, wait) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(act, wait); };
}

function openAddressed() {
  const asked = /^#node=(.*)$/.exec(location.hash);
  if (!asked) return false;
  let name = asked[1];
  try { name = decodeURIComponent(name); } catch { return false; }
  const node = nodeByName.get(name);
  if (node) choose(node);
  return Boolean(node);
}

function drawWarnings() {
  byId("warnings").hidden = !data.warnings.length;
  const more = data.warnings_left_out ? el("p", { class: "quiet" }, `and ${data.warnings_left_out} more in events.jsonl`) : "";
  byId("warnings").append(el("ul", null, ...data.warnings.map((text) => el("li", null, text))), more);
}

function start() {
  if (!nodes.length) return;
  document.querySelector(".filter").hidden = byId("rack").hidden = false;
  verdictBoxes();
  drawRack();
  drawWarnings();
  drawPairs();
  filter();
  const worst = nodes.find((node) => node.kind === "fail") || nodes.find((node) => node.kind === "unknown") || nodes.find((node) => node.kind === "skipped");
  if (!openAddressed() && (worst || nodes.length === 1)) choose(worst || nodes[0], true);
  byId("terms").addEventListener("input", later(filter, 120)); // a pause between two keys: a thousand nodes are not redrawn for each
  window.addEventListener("hashchange", openAddressed);
  window.addEventListener("resize", later(resizeCharts, 100));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
}

start();
