// One node: why it is not ready, then its checks, the ones that did not pass first.
function choose(node, quietly) {
  for (const cell of cells) cell.setAttribute("aria-selected", String(nodeOf(cell) === node));
  drawNode(node);
  const wanted = `#node=${encodeURIComponent(node.name)}`;
  if (!quietly) {
    if (location.hash !== wanted) history.replaceState(null, "", wanted);
    byId("node-title").focus({ preventScroll: true });
    byId("node").scrollIntoView({ block: "nearest" });
  }
}

function drawNode(node) {
  const checks = checksOf(node);
  const open = checks.filter((check) => check.verdict !== "pass");
  const passed = checks.filter((check) => check.verdict === "pass");
  const said = [...(node.reason ? [node.reason] : []), ...(open.length ? [] : node.reasons)];
  byId("node").replaceChildren(
    el("h2", { id: "node-title", tabindex: "-1" }, badge(node.state), ` ${node.name}`),
    node.facts || node.tasks ? el("p", { class: "quiet" }, [node.facts, node.tasks && `tasks: ${node.tasks}`].filter(Boolean).join(" · ")) : "",
    ...said.map((line) => el("p", null, line)),
    node.hint ? el("p", { class: "hint" }, node.hint) : "",
    node.pending.length ? el("p", null, `Handlers that did not run: ${node.pending.join(", ")}`) : "",
    open.length ? checkTable(`Not passed (${open.length})`, open) : "",
    passed.length ? fold(`${plural(passed.length, "check")} passed`, () => checkTable("Passed", passed), !open.length) : "",
    checks.length ? "" : el("p", null, "Nothing was measured on this node."),
  );
  byId("node").hidden = false;
}

const checkTable = (caption, checks) => table(caption, ["Verdict", "Check", "#Value", "#Floor", "Reason, source, raw output"], checks.map(checkRow));

function checkRow(check) {
  return el("tr", null,
    el("td", null, badge(check.verdict)),
    el("th", { scope: "row" }, check.name, check.simulated ? el("div", null, el("span", { class: "simulated" }, "simulated")) : ""),
    figureCell("Value", shown(check.value, check.unit)), figureCell("Floor", shown(check.floor, check.unit)),
    el("td", null, check.reason, check.waiver ? el("p", { class: "waiver" }, check.waiver) : "",
      check.source ? el("p", { class: "quiet" }, `Source: ${check.source}`) : "", rawOf(check)));
}

function rawOf(check) {
  if (check.raw) return fold("Raw output", () => el("pre", { tabindex: "0" }, check.raw));
  return check.rawLeftOut ? el("p", { class: "quiet" }, `Raw output (${check.rawLeftOut} characters) is in events.jsonl; here it would make the page too large.`) : "";
}

const nodeButton = (node) => el("button", { type: "button", click: () => choose(node) }, node.name);
