"use strict";
const search = document.getElementById("search");
search.parentElement.hidden = false;
const rows = [...document.querySelectorAll(".searched tbody tr, .finding tbody tr, .stacked tbody tr")];
const words = rows.map((row) => row.textContent.toLowerCase());
const folds = new Map();
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  rows.forEach((row, i) => { row.hidden = wanted !== "" && !words[i].includes(wanted); });
  for (const fold of document.querySelectorAll("details")) {
    if (!fold.querySelector(".searched, .finding tbody") && !fold.closest(".finding, #answer")) continue;
    if (!folds.has(fold)) folds.set(fold, fold.open);
    fold.open = wanted === "" ? folds.get(fold) : true;
  }
});

const plot = document.querySelector(".plot");
for (const hint of document.querySelectorAll(".zoom")) hint.hidden = false;
const NUMBERS = ["x", "width", "x1", "x2"];
const shapes = plot ? [...plot.querySelectorAll("rect, line, text")].map((shape) => ({
  shape,
  fixed: shape.classList.contains("fixed"),
  at: NUMBERS.filter((name) => shape.hasAttribute(name)).map((name) => [name, Number(shape.getAttribute(name))]),
})) : [];

function zoom(from, to) {
  const start = Number(plot.dataset.from), end = Number(plot.dataset.to), wide = plot.viewBox.baseVal.width;
  const scale = (end - start) / (to - from), shift = wide * (from - start) / (end - start);
  for (const { shape, fixed, at } of shapes) {
    if (fixed) {
      if (shape.tagName === "text") {
        const time = from + (to - from) * at[0][1] / wide;
        const shown = new Date(time).toISOString();
        shape.textContent = (to - from < 60000 ? shown.slice(5, 23) : shown.slice(5, 19)).replace("T", " ");
      }
      continue;
    }
    for (const [name, value] of at) {
      shape.setAttribute(name, name === "width" ? value * scale : (value - shift) * scale);
    }
  }
}

function follow() {
  const place = decodeURIComponent(location.hash.slice(1));
  if (place.startsWith("time=") && plot) {
    const [from, to] = place.slice(5).split("/").map((time) => Date.parse(time));
    if (to > from) zoom(from, to);
    else if (to === from) zoom(from - 5000, to + 5000);
    document.getElementById("leaders").scrollIntoView();
    return;
  }
  const target = place && document.getElementById(place);
  for (let fold = target; fold; fold = fold.parentElement) if (fold.tagName === "DETAILS") fold.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", follow);
follow();
