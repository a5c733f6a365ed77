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
  const box = el("div", { role: "listbox", "aria-label": "Nodes", "aria-describedby": "rack-help", class: dense ? "racks dense" : "racks" });
  let number = 0;
  for (const [rack, members] of racks()) {
    const name = rack ? el("div", { id: `rack-${++number}`, class: "quiet" }, rack) : "";
    box.append(el("div", { role: rack ? "group" : "presentation", "aria-labelledby": rack ? `rack-${number}` : null, class: rack ? "rack" : "rack alone" },
      name, el("div", { class: "cells", role: "presentation" }, ...members.map((node) => cellOf(node, dense)))));
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

// The cell of the next row of the screen that stands nearest below (or above) this one; racks stand side by side.
function nextRow(seen, here, step) {
  const boxes = seen.map((cell) => cell.getBoundingClientRect()), from = boxes[here];
  const further = boxes.map((box, at) => ({ at, down: (box.top - from.top) * step, aside: Math.abs(box.left - from.left) })).filter(({ down }) => down > 2);
  further.sort((one, other) => (Math.abs(one.down - other.down) > 2 ? one.down - other.down : one.aside - other.aside));
  return further.length ? further[0].at : here;
}

function filterRack() {
  const kept = new Set(matching.map((node) => node.place));
  for (const cell of cells) cell.hidden = !kept.has(Number(cell.dataset.place));
  for (const rack of document.querySelectorAll(".rack")) rack.hidden = !rack.querySelector(".cell:not([hidden])");
  const reachable = cells.find((cell) => cell.tabIndex === 0 && !cell.hidden);
  if (!reachable) roveTo(cells.find((cell) => !cell.hidden));
}
