// Elements are made here and nowhere else. Texts become text nodes: nothing that a node said is ever read as HTML.
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const byId = (id) => document.getElementById(id);
const badge = (word) => el("span", { class: `badge ${kindOf(word)}` }, el("span", { "aria-hidden": "true" }, SIGNS[kindOf(word)]), ` ${word}`);

// A table whose rows become blocks on a phone; each cell then says which column it is of. A column of figures is written "#Name".
function table(caption, columns, rows, hidden) {
  const head = el("tr", null, ...columns.map((name) => el("th", { scope: "col", class: name.startsWith("#") ? "number" : null }, name.replace(/^#/, ""))));
  return el("table", { class: "stacks", "aria-label": hidden ? caption : null }, hidden ? "" : el("caption", null, caption), el("thead", null, head), el("tbody", null, ...rows));
}

// A figure stays in one piece; a long text in its place (a list of versions) may break anywhere.
const figureCell = (name, text) => el("td", { class: text.length > 32 ? null : "number", "data-name": name }, text || (name === "Floor" ? "no floor" : "no value"));

// A fold whose content is made when it is opened for the first time: a thousand of them cost nothing until then.
function fold(title, make, open) {
  const made = el("details", null, el("summary", null, title));
  const fill = () => { if (made.open && made.childElementCount === 1) made.append(make()); };
  made.addEventListener("toggle", fill);
  if (open) { made.open = true; fill(); }
  return made;
}

const say = (text) => { byId("live").textContent = text; };
