const data = JSON.parse(byId("data").textContent);
const textAt = (place) => (place ? data.texts[place - 1] : "");

// Sentences are sent once, with NUL where their numbers go.
function sentence(place, numbers) {
  const given = numbers ? numbers.split(" ") : [];
  return textAt(place).replace(/\0/g, () => given.shift() ?? "?");
}

function unpackCheck(row) {
  const [name, verdict, value, unit, floor, reason, numbers, source, step, simulated, raw, waiver] = row;
  return {
    name: textAt(name), verdict: VERDICTS[verdict], value, unit: textAt(unit), floor, reason: sentence(reason, numbers), source: textAt(source),
    step: textAt(step), simulated: Boolean(simulated), raw: raw > 0 ? data.raws[raw - 1] : "", rawLeftOut: raw < 0 ? -raw : 0, waiver: textAt(waiver),
  };
}

const nodes = data.nodes.map((sent, place) => {
  const verdict = VERDICTS[sent.verdict || 0];
  // A run that promises no proof has nodes that are done, not nodes that were not verified.
  const state = sent.status !== "ok" ? sent.status : verdict === "none" && !data.proving ? "done" : verdict;
  return {
    place, name: sent.name, status: sent.status, verdict, state, kind: kindOf(state), reason: sent.reason || "", hint: sent.hint || "",
    facts: sent.facts || "", tasks: sent.tasks || "", reasons: sent.reasons || [], pending: sent.pending || [], rows: sent.checks || [], unpacked: null,
  };
});
const nodeByName = new Map(nodes.map((node) => [node.name, node]));
const checksOf = (node) => (node.unpacked ||= node.rows.map(unpackCheck));

// What is shown of the nodes: changed by the filter, read by every part of the page.
let matching = nodes;
