"use strict";
// Curves: all scenarios follow to the same clock.
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".tabbed input")) return;
  for (const twin of document.querySelectorAll(`.tabbed input[value="${target.value}"]`)) twin.checked = true;
});
// A picker of one scenario among many: what belongs to others is hidden, on paper, too.
const pick = document.getElementById("pick");
const show = (place) => {
  pick.value = place;
  for (const one of document.querySelectorAll("[data-at]"))
    one.hidden = place !== "" && !one.dataset.at.split(" ").includes(place);
  if (place) document.getElementById(`scenario-${place}`)?.setAttribute("open", "");
};
for (const picker of document.querySelectorAll(".picker")) picker.hidden = false;
if (pick) {
  pick.addEventListener("change", () => show(pick.value));
  for (const button of document.querySelectorAll(".picker button"))
    button.addEventListener("click", () => {
      const n = pick.options.length - 1;
      show(String(((Number(pick.value) - 1 + Number(button.value) + n) % n) + 1));
    });
  show(pick.value);
}
// A picker of one grey strategy: its lines are drawn in ink, above the others.
const also = document.getElementById("also");
also?.addEventListener("change", () => {
  for (const one of document.querySelectorAll("svg [data-s]")) {
    one.classList.toggle("picked", one.dataset.s === also.value);
    if (one.dataset.s === also.value) one.parentNode.append(one);
  }
});
// A link to something folded or hidden opens it.
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const hidden = target?.closest("[data-at][hidden]");
  if (hidden) show(hidden.dataset.at.split(" ")[0]);
  (target?.closest("details") ?? target?.querySelector(":scope > details.fold"))?.setAttribute("open", "");
  if (hidden) target.scrollIntoView();
};
window.addEventListener("hashchange", unfold);
unfold();
// On paper nothing is folded but the lists of runs.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.fold:not([open])")];
  opened.forEach((one) => one.setAttribute("open", ""));
});
window.addEventListener("afterprint", () => opened.forEach((one) => one.removeAttribute("open")));
// Lines: pointing at one, or at its key, names it with its value and fades the others; a click on a key hides it.
const lines = (figure) => [...figure.querySelectorAll("svg [data-s]")];
const emphasise = (figure, wanted) =>
  lines(figure).forEach((one) => one.classList.toggle("faded", wanted !== null && !wanted.includes(one.dataset.s)));
const said = (figure, index) =>
  lines(figure).filter((one) => one.dataset.s === index && one.checkVisibility())
    .map((one) => one.querySelector("title")?.textContent).find(Boolean) ?? "";
for (const figure of document.querySelectorAll("figure")) {
  if (!figure.querySelector("svg title")) continue;
  const readout = document.createElement("p");
  readout.className = "readout";
  readout.setAttribute("role", "status");
  figure.append(readout);
  const name = (indices) => {
    emphasise(figure, indices);
    readout.textContent = indices?.length === 1 ? said(figure, indices[0]) : "";
  };
  // Lines are thin: the nearest within a few pixels counts.
  const near = ({ clientX, clientY }) => {
    for (const far of [0, 3, 6, 9])
      for (let turn = 0; turn < (far ? 8 : 1); turn++) {
        const angle = (turn * Math.PI) / 4;
        const [x, y] = [clientX + far * Math.cos(angle), clientY + far * Math.sin(angle)];
        const found = document.elementFromPoint(x, y)?.closest("svg [data-s]:not(.off)");
        if (found && figure.contains(found)) return [found.dataset.s];
      }
    return null;
  };
  for (const svg of figure.querySelectorAll("svg[role]")) {
    svg.addEventListener("pointermove", (event) => name(near(event)));
    svg.addEventListener("pointerdown", (event) => name(near(event)));
    svg.addEventListener("pointerleave", () => name(null));
  }
  for (const key of figure.querySelectorAll(".keys li")) {
    const indices = key.dataset.s.split(" ");
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(...key.childNodes);
    key.append(button);
    for (const on of ["pointerenter", "focusin"]) key.addEventListener(on, () => name(indices));
    for (const off of ["pointerleave", "focusout"]) key.addEventListener(off, () => name(null));
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!shown));
      for (const one of lines(figure)) if (indices.includes(one.dataset.s)) one.classList.toggle("off", shown);
      name(shown ? null : indices);
    });
  }
}
// Claims: what does not pass the filters is hidden.
const choices = [...document.querySelectorAll(".filters select")];
const words = document.querySelector(".filters input");
const filter = () => {
  const wanted = words.value.toLowerCase().split(/\s+/);
  const passes = (claim) =>
    choices.every(({ name, value }) => !value || claim.dataset[name] === value) &&
    wanted.every((word) => claim.textContent.toLowerCase().includes(word));
  for (const claim of document.querySelectorAll("[data-claim]")) claim.hidden = !passes(claim);
  for (const part of document.querySelectorAll(".claims-block, .claims-row"))
    part.hidden = !part.querySelector("[data-claim]:not([hidden])");
  if ([words, ...choices].some(({ value }) => value))
    for (const block of document.querySelectorAll(".claims-block:not([hidden])")) block.open = true;
  const shown = document.querySelectorAll("[data-claim]:not([hidden])").length;
  document.querySelector(".filters output").textContent = `${shown} shown`;
};
if (words) {
  words.closest(".filters").hidden = false;
  [words, ...choices].forEach((one) => one.addEventListener("input", filter));
  filter();
}
