"use strict";
// Tables that readers sort and filter, without other scripts. Every `table.sortable` has buttons in its headings; one
// of many rows has a field that filters them.
// - Cells are sorted by `data-v`, or by their text; a column of numbers as numbers.
// - Rows in a `tbody` of their own belong together: they move, and are hidden, as one.
// - `=name` in the field finds rows with a cell that is exactly the name; a link with `data-filter` fills in the field
//   of the table that it leads to.
(() => {
  const MIN_ROWS_TO_FILTER = 8;
  const isUnknown = (text) => ["", "nan", "–"].includes(text);
  const value = (cell) => cell?.dataset.v ?? cell?.textContent.trim() ?? "";
  const number = (text) => {
    const plain = text.replace("−", "-").replace(/(?<=\d),(?=\d{3})/g, "");
    return /^-?(inf|∞)$/.test(plain) ? Infinity * (plain[0] === "-" ? -1 : 1) : Number(plain);
  };
  const byNumber = (a, b) => (number(a) === number(b) ? 0 : number(a) - number(b));
  const byText = (a, b) => a.localeCompare(b, undefined, { numeric: true });
  const groupsOf = (table) => (table.tBodies.length > 1 ? [...table.tBodies] : [...table.tBodies[0].rows]);
  const cellAt = (group, column) => (group.rows?.[0] ?? group).cells[column];

  const sortable = (table) => {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      if (heading.querySelector("a")) {
        button.setAttribute("aria-label", `Sort by ${heading.textContent.trim()}`);
        button.className = "apart";
      } else button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const turn = heading.ariaSort === "ascending" ? -1 : 1;
        const groups = groupsOf(table);
        const values = new Map(groups.map((group) => [group, value(cellAt(group, column))]));
        const known = [...values.values()].filter((text) => !isUnknown(text));
        const compare = known.every((text) => !Number.isNaN(number(text))) ? byNumber : byText;
        groups.sort((a, b) => {
          const [x, y] = [values.get(a), values.get(b)];
          if (isUnknown(x) || isUnknown(y)) return isUnknown(x) - isUnknown(y); // unknown values stay last
          return turn * compare(x, y);
        });
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.ariaSort = turn === 1 ? "ascending" : "descending";
        if (table.tBodies.length > 1) table.tBodies[0].before(...groups);
        else table.tBodies[0].append(...groups);
      });
    });
  };

  const filterable = (table) => {
    const groups = groupsOf(table);
    if (groups.length < MIN_ROWS_TO_FILTER) return;
    const bar = document.createElement("p");
    const label = document.createElement("label");
    const [field, count] = [document.createElement("input"), document.createElement("output")];
    bar.className = "table-filter";
    field.type = "search";
    field.autocomplete = "off";
    label.append("Filter rows ", field);
    if (table.caption) field.setAttribute("aria-label", `Filter rows: ${table.caption.textContent.trim()}`);
    bar.append(label, " ", count);
    (table.closest(".wide") ?? table).before(bar);
    const matches = (group, text) => {
      const cells = [...(group.rows ?? [group])].flatMap((row) => [...row.cells]);
      const texts = cells.map((cell) => cell.textContent.trim().toLowerCase());
      if (text.startsWith("=")) return texts.includes(text.slice(1).trim());
      return text.split(/\s+/).every((word) => texts.some((cell) => cell.includes(word)));
    };
    field.addEventListener("input", () => {
      const text = field.value.trim().toLowerCase();
      groups.forEach((group) => (group.hidden = !matches(group, text)));
      const shown = groups.filter((group) => !group.hidden).length;
      count.textContent = text ? `${shown} of ${groups.length} rows` : "";
    });
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    if (!table.tHead || !table.tBodies.length) continue;
    filterable(table);
    sortable(table);
  }
  document.addEventListener("click", ({ target }) => {
    const link = target.closest?.("a[data-filter]");
    const field = link && document.getElementById(link.hash.slice(1))?.querySelector(".table-filter input");
    if (!field) return;
    field.value = `=${link.dataset.filter}`;
    field.dispatchEvent(new Event("input"));
  });
})();
