// Values under the pointer, or at the place that the arrow keys chose. One listener for all charts, now and later.
const parsed = new WeakMap();
const data = (figure) => {
  if (!parsed.has(figure)) parsed.set(figure, JSON.parse(figure.dataset.chart));
  return parsed.get(figure);
};
const format = (value) => value === null ? "unknown" : value >= 100 ? Math.round(value).toLocaleString("en-US")
  : value >= 0.95 ? value.toFixed(1) : value ? value.toFixed(2) : "0";

function show(figure, place) {
  const { x, at, lines } = data(figure);
  const cross = figure.querySelector(".cross");
  for (const name of ["x1", "x2"]) cross.setAttribute(name, x[place]);
  cross.dataset.on = "";
  figure.dataset.place = place;
  figure.querySelector("[data-at]").textContent = at[place] + " UTC";
  figure.querySelectorAll("[data-line]").forEach((field, number) => { field.textContent = format(lines[number][place]); });
}

function leave(figure) {
  const { x } = data(figure);
  show(figure, x.length - 1);
  delete figure.dataset.place;
  delete figure.querySelector(".cross").dataset.on;
  figure.querySelector("[data-at]").textContent = "newest";
}

function nearest(x, wanted) {
  let low = 0, high = x.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (x[middle] < wanted) low = middle; else high = middle; }
  return wanted - x[low] < x[high] - wanted ? low : high;
}

const figureOf = (event) => event.target instanceof Element ? event.target.closest("svg")?.closest("[data-chart]") : null;
document.addEventListener("pointermove", (event) => {
  const figure = figureOf(event);
  if (!figure) return;
  const box = figure.querySelector("svg").getBoundingClientRect();
  show(figure, nearest(data(figure).x, (event.clientX - box.left) / box.width * 1000));
});
document.addEventListener("pointerout", (event) => {
  const figure = figureOf(event);
  if (figure && !figure.querySelector("svg").contains(event.relatedTarget)) leave(figure);
});
document.addEventListener("focusout", (event) => { const figure = figureOf(event); if (figure) leave(figure); });
document.addEventListener("keydown", (event) => {
  const figure = figureOf(event);
  const last = figure ? data(figure).x.length - 1 : 0;
  const now = Number(figure?.dataset.place ?? last);
  const place = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
  if (!figure || place === undefined) return;
  event.preventDefault();
  show(figure, Math.max(0, Math.min(last, place)));
});
