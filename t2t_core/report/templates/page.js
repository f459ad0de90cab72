"use strict";
// Sorting: every head of a sortable table gets a button. Rows stay on their side of a divider.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(table.tBodies[0], column, down);
    });
  });
}
function sort(body, column, down) {
  const parts = [[]];
  for (const row of [...body.rows]) {
    if (row.classList.contains("divider")) parts.push([]);
    parts.at(-1).push(row);
  }
  for (const part of parts) {
    const first = part.filter((row) => row.classList.contains("divider"));
    const rest = part.filter((row) => !row.classList.contains("divider"));
    rest.sort((a, b) => compare(a.cells[column], b.cells[column], down));
    body.append(...first, ...rest);
  }
}
function compare(a, b, down) {
  const [x, y] = [number(a), number(b)];
  if (x !== null && y !== null) return down ? y - x : x - y;
  if (x !== null || y !== null) return x === null ? 1 : -1;
  const order = a.textContent.trim().localeCompare(b.textContent.trim(), "en", { numeric: true });
  return down ? -order : order;
}
function number(cell) {
  const text = cell.dataset.value ?? cell.textContent.trim().replace(/,/g, "").replace(/^\$/, "");
  return text !== "" && Number.isFinite(Number(text)) ? Number(text) : null;
}

// Filters: what has a facet is shown where its value is the one that is chosen. #facet=value chooses one.
const filters = document.querySelector(".filters");
if (filters) {
  const [selects, find] = [[...filters.querySelectorAll("select")], filters.querySelector("[data-find]")];
  const told = filters.querySelector("output");
  const rows = [...document.querySelectorAll("tbody tr:not(.divider), details.answer")];
  const [listed, judged] = [new Set(rows), new Set(rows)];
  const ofAnswers = new Set();  // the facets that answers have: one without such a facet is another than the chosen one
  for (const { dataset } of selects) {
    for (const one of document.querySelectorAll("[data-" + dataset.filter + "]")) {
      judged.add(one);
      if (one.matches("details.answer")) ofAnswers.add(dataset.filter);
    }
  }
  function isOther(element, facet, value) {
    const own = element.dataset[facet];
    return own === undefined ? element.matches("details.answer") && ofAnswers.has(facet) : own !== value;
  }
  function apply() {
    const wanted = selects.filter((select) => select.value);
    const words = find.value.trim().toLowerCase();
    for (const element of judged) {
      const lacks = words !== "" && listed.has(element) && !element.textContent.toLowerCase().includes(words);
      element.hidden = lacks || wanted.some((select) => isOther(element, select.dataset.filter, select.value));
    }
    const shown = rows.filter((row) => !row.closest("[hidden]")).length;
    told.textContent = wanted.length || words ? shown + " of " + rows.length + " shown" : "";
  }
  function read() {
    const chosen = new URLSearchParams(location.hash.slice(1));
    for (const select of selects) {
      const value = chosen.get(select.dataset.filter);
      if (value !== null && [...select.options].some((option) => option.value === value)) select.value = value;
    }
    apply();
  }
  filters.hidden = false;
  filters.addEventListener("input", apply);
  addEventListener("hashchange", read);
  read();
}
