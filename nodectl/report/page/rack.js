// The rack: one list box, so that a thousand nodes are one stop of the Tab key.
const DENSE = 150; // more nodes than this have no room for their names
let cells = [];

// Nodes whose names are host.rack stand together; other names say nothing about where a node stands.
function racks() {
  const found = new Map();
  for (const node of nodes) {
    const rack = node.name.includes(".") ? node.name.slice(node.name.indexOf(".") + 1) : "";
    found.set(rack, [...(found.get(rack) || []), node]);
  }
  return found.size > nodes.length / 2 ? new Map([["", nodes]]) : found;
}

function cellOf(node, dense) {
  const shortName = node.name.split(".")[0];
  const why = node.reasons[0] || node.reason;
  return el("div", {
    role: "option", id: `cell-${node.place}`, class: `cell ${node.kind}`, tabindex: "-1", "aria-selected": "false", "data-place": node.place,
    "aria-label": `${node.name}, ${node.state}${why ? `: ${why.slice(0, 120)}` : ""}`,
  }, el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[node.kind]), dense ? "" : el("span", { "aria-hidden": "true" }, shortName));
}

function drawRack() {
  const dense = nodes.length > DENSE;
  const box = el("div", { role: "listbox", "aria-label": "Nodes", "aria-describedby": "rack-help", class: dense ? "dense" : "" });
  let number = 0;
  for (const [rack, members] of racks()) {
    const group = el("div", { class: "cells", role: rack ? "group" : null, "aria-labelledby": rack ? `rack-${++number}` : null });
    if (rack) box.append(el("div", { id: `rack-${number}`, class: "rack quiet" }, rack));
    group.append(...members.map((node) => cellOf(node, dense)));
    box.append(group);
  }
  byId("cells").replaceChildren(box);
  cells = [...box.querySelectorAll(".cell")];
  box.addEventListener("click", (event) => { const cell = event.target.closest(".cell"); if (cell) choose(nodeOf(cell)); });
  box.addEventListener("keydown", rackKey);
  for (const kind of ["pointerover", "focusin"]) box.addEventListener(kind, (event) => point(event.target.closest(".cell")));
  roveTo(cells.find((cell) => cell.classList.contains("fail")) || cells[0]);
}

const nodeOf = (cell) => nodes[Number(cell.dataset.place)];

function point(cell) {
  if (cell) byId("pointed").textContent = cell.getAttribute("aria-label");
}

function roveTo(cell) {
  for (const other of cells) other.tabIndex = -1;
  if (cell) cell.tabIndex = 0;
}

function rackKey(event) {
  const seen = cells.filter((cell) => !cell.hidden);
  const here = seen.indexOf(event.target.closest(".cell"));
  if (here < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
  const moves = {
    ArrowRight: () => here + 1, ArrowLeft: () => here - 1, Home: () => 0, End: () => seen.length - 1,
    ArrowDown: () => nextRow(seen, here, 1), ArrowUp: () => nextRow(seen, here, -1),
  };
  if (event.key === "Enter" || event.key === " ") choose(nodeOf(seen[here]));
  else if (moves[event.key]) {
    const cell = seen[Math.max(0, Math.min(seen.length - 1, moves[event.key]()))];
    roveTo(cell);
    cell.focus();
  } else return;
  event.preventDefault();
}

// The cell of the next row that stands nearest below (or above) this one.
function nextRow(seen, here, step) {
  const from = seen[here].getBoundingClientRect();
  let best = here, row = null, gap = Infinity;
  for (let at = here + step; at >= 0 && at < seen.length; at += step) {
    const box = seen[at].getBoundingClientRect();
    if (Math.abs(box.top - from.top) < 2) continue;
    row ??= box.top;
    if (Math.abs(box.top - row) >= 2) break;
    if (Math.abs(box.left - from.left) < gap) { best = at; gap = Math.abs(box.left - from.left); }
  }
  return best;
}

function filterRack() {
  const kept = new Set(matching.map((node) => node.place));
  for (const cell of cells) cell.hidden = !kept.has(Number(cell.dataset.place));
  const reachable = cells.find((cell) => cell.tabIndex === 0 && !cell.hidden);
  if (!reachable) roveTo(cells.find((cell) => !cell.hidden));
}
