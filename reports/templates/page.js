"use strict";
// Tables: a click on a heading sorts by it, a second one turns the order round.
const number = ({ dataset: { v } }) => (v === "inf" ? Infinity : v === "-inf" ? -Infinity : Number(v));
const byNumber = (turn) => (a, b) => {
  const [x, y] = [number(a), number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y); // what is unknown stays last
  return x === y ? 0 : turn * (x - y);
};
const byText = (turn) => (a, b) => turn * a.dataset.v.localeCompare(b.dataset.v, undefined, { numeric: true });
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const turn = heading.ariaSort === "ascending" ? -1 : 1;
      const compare = (heading.classList.contains("n") ? byNumber : byText)(turn);
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.ariaSort = turn === 1 ? "ascending" : "descending";
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => compare(a.cells[column], b.cells[column]));
      table.tBodies[0].append(...rows);
    });
  });
}
// Curves: all scenarios follow to the same clock.
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".tabbed input")) return;
  for (const twin of document.querySelectorAll(`.tabbed input[value="${target.value}"]`)) twin.checked = true;
});
// A link to a run opens the list that it stands in.
const unfold = () => document.getElementById(location.hash.slice(1))?.closest("details")?.setAttribute("open", "");
window.addEventListener("hashchange", unfold);
unfold();
// Keys: pointing at a strategy fades the others.
for (const key of document.querySelectorAll(".keys li")) {
  const drawn = [...key.closest("figure").querySelectorAll("svg [data-s]")];
  const fade = (on) => drawn.forEach((one) => one.classList.toggle("faded", on && one.dataset.s !== key.dataset.s));
  key.addEventListener("pointerenter", () => fade(true));
  key.addEventListener("pointerleave", () => fade(false));
}
