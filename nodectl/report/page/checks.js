// One row per check over all nodes that the filter leaves.
const NAMES = 8; // node names in one cell; more push the next check off the screen

function gather() {
  const found = new Map();
  for (const node of matching) {
    for (const check of checksOf(node)) {
      if (!found.has(check.name)) found.set(check.name, { name: check.name, unit: check.unit, counts: {}, values: [], texts: new Map(), floors: new Set(), sources: new Set(), bad: [] });
      const row = found.get(check.name);
      row.counts[check.verdict] = (row.counts[check.verdict] || 0) + 1;
      if (typeof check.value === "number") row.values.push(check.value);
      else if (check.value !== null && check.value !== undefined) row.texts.set(shown(check.value), (row.texts.get(shown(check.value)) || 0) + 1);
      if (check.floor !== null && check.floor !== undefined) row.floors.add(shown(check.floor, check.unit));
      if (check.source) row.sources.add(check.source);
      if (check.verdict !== "pass") row.bad.push(node);
    }
  }
  return [...found.values()].sort((one, other) => weight(other) - weight(one) || (one.name < other.name ? -1 : 1));
}

const weight = (row) => (row.counts.fail || 0) * 1e6 + (row.counts.unknown || 0) * 1e3 + (row.counts.skipped || 0);

function drawChecks() {
  const rows = gather();
  byId("checks").hidden = !rows.length;
  const bad = rows.filter((row) => row.bad.length), good = rows.filter((row) => !row.bad.length);
  byId("checks").replaceChildren(byId("checks-title"), bad.length ? overall("Not passed everywhere", bad) : "",
    good.length ? fold(`${plural(good.length, "check")} passed on all nodes shown`, () => overall("Passed everywhere", good), !bad.length) : "");
}

const overall = (caption, rows) => table(caption, ["Check", "Verdicts", "#Least · median · most", "#Floor", "Nodes that did not pass"], rows.map(overallRow), true);

function overallRow(row) {
  const words = ["fail", "unknown", "skipped", "pass"].filter((word) => row.counts[word]);
  return el("tr", null,
    el("th", { scope: "row" }, row.name, row.sources.size ? el("div", { class: "quiet" }, [...row.sources].slice(0, 2).join("; ")) : ""),
    el("td", { "data-name": "Verdicts" }, ...words.flatMap((word) => [badgeCount(word, row.counts[word]), " "])),
    figureCell("Least · median · most", spread(row)), figureCell("Floor", several([...row.floors])),
    el("td", null, ...row.bad.slice(0, NAMES).flatMap((node) => [nodeButton(node), " "]), row.bad.length > NAMES ? `and ${row.bad.length - NAMES} more` : ""));
}

const badgeCount = (word, count) => el("span", { class: `badge ${word}` }, el("span", { "aria-hidden": "true" }, SIGNS[word]), ` ${count} ${word}`);
const several = (texts) => (texts.length > 2 ? `${texts[0]} and ${texts.length - 1} others` : texts.join(", ") || "none");

function spread(row) {
  if (row.values.length) {
    const sorted = [...row.values].sort((one, other) => one - other);
    const least = shown(sorted[0], row.unit), most = shown(sorted[sorted.length - 1], row.unit);
    return least === most ? least : `${least} · ${shown(median(sorted), row.unit)} · ${most}`;
  }
  const texts = [...row.texts].sort((one, other) => other[1] - one[1]).slice(0, 3);
  return row.texts.size === 1 ? texts[0][0] : texts.map(([text, count]) => `${text} (${count})`).join(", ") || "none";
}
