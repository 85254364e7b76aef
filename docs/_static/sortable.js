"use strict";
// Tables of the leaderboard's pages are sorted and filtered by tables.js, which looks for this class.
if (/leaderboard/.test(window.location.pathname)) {
  for (const table of document.querySelectorAll("article table")) table.classList.add("sortable");
}
