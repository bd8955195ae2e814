// Live figures. The server makes all HTML: this module gets the same page again and replaces the marked parts that
// changed. Numbers that tick come from the stream of events. Nothing here turns text into HTML.
const EVERY = 5000;
const SOON = 2000;
const STALE = 10000;
const body = document.body;
const stream = body.dataset.stream;
const stale = document.getElementById("stale");
const news = document.getElementById("news");
const known = new Map();
let source = null, timer = 0, heard = performance.now(), shown = performance.now(), asked = performance.now(), asking = null, state = body.dataset.state;

// Parts

const parts = (root) => [...root.querySelectorAll("[data-live][id]")];
for (const part of parts(document)) known.set(part.id, part.outerHTML);

function busy(part) {
  if (part.querySelector("[data-place], :popover-open") || part.matches("[data-place]")) return true;
  const active = document.activeElement;
  if (part.contains(active) && active.matches("input, select, textarea")) return true;
  const selection = getSelection();
  return !!selection && !selection.isCollapsed && selection.rangeCount > 0 && selection.containsNode(part, true);
}

const sameLink = (node) => [...document.querySelectorAll(node.localName)]
  .find((other) => other.getAttribute("href") === node.getAttribute("href") && other.textContent === node.textContent);

function replace(part, newer) {
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  const open = new Set([...part.querySelectorAll("details[id][open]")].map((node) => node.id));
  const boxes = new Map([...part.querySelectorAll(".scroll[id]")].map((node) => [node.id, node.scrollLeft]));
  const checked = new Set([...part.querySelectorAll("input[type=checkbox][id]:checked")].map((node) => node.id));
  const fresh = document.importNode(newer, true);
  for (const node of fresh.querySelectorAll("details[id]")) if (open.has(node.id)) node.open = true;
  for (const node of fresh.querySelectorAll("input[type=checkbox][id]")) node.checked = checked.has(node.id);
  part.replaceWith(fresh);
  for (const [id, left] of boxes) { const box = document.getElementById(id); if (box) box.scrollLeft = left; }
  if (active) (active.id ? document.getElementById(active.id) : sameLink(active))?.focus({ preventScroll: true });
}

function swap(page) {
  for (const part of parts(document)) {
    const newer = page.getElementById(part.id);
    if (!newer || newer.outerHTML === known.get(part.id) || busy(part)) continue;
    known.set(part.id, newer.outerHTML);
    replace(part, newer);
  }
  document.title = page.title;
  say(page.body.dataset.state);
}

function say(now) {
  if (now && state && now !== state) news.textContent = `The job is ${now} now.`;
  if (now) state = now;
}

function refresh() {
  clearTimeout(timer);
  if (asking || document.hidden) return;
  asked = performance.now();
  const request = asking = new XMLHttpRequest();
  request.open("GET", location.href);
  request.responseType = "document";
  request.timeout = 8000;
  request.onload = () => {
    if (new URL(request.responseURL).pathname === "/login") location.reload();
    if (request.status === 200 && request.response) { heard = performance.now(); swap(request.response); }
  };
  request.onloadend = () => { asking = null; timer = setTimeout(refresh, EVERY); };
  request.send();
}

// Numbers

const units = [["TiB", 1024 ** 4], ["GiB", 1024 ** 3], ["MiB", 1024 ** 2], ["KiB", 1024]];
function size(bytes) {
  for (const [unit, step] of units) if (bytes >= step) return `${(bytes / step).toFixed(1)} ${unit}`;
  return `${bytes} B`;
}
function show(fields, view) {
  for (const field of fields) {
    const value = field.dataset.value.split(".").reduce((at, name) => at?.[name], view);
    if (typeof value !== "number") continue;
    const text = field.dataset.format === "size" ? size(value) : Math.round(value).toLocaleString("en-US");
    if (field.textContent !== text) field.textContent = text;
  }
}
function hear(event) {
  heard = performance.now();
  const found = JSON.parse(event.data);
  if (Array.isArray(found.jobs)) {
    // The whole page again, and no number alone: the figures of a row and their totals add up.
    if (performance.now() - asked > SOON) refresh();
  } else if (found.job && !found.job.unreachable) {
    show(document.querySelectorAll("[data-value]"), found.job);
    say(found.job.state);
  }
}

function listen() {
  if (source || !stream) return;
  source = new EventSource(stream);
  source.addEventListener("snapshot", hear);
  source.onerror = () => { if (source?.readyState === EventSource.CLOSED) { quiet(); setTimeout(() => document.hidden || listen(), 10000); } };
}
function quiet() { source?.close(); source = null; }

// Only while somebody looks.

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { quiet(); clearTimeout(timer); asking?.abort(); return; }
  shown = performance.now();
  listen();
  refresh();
});
const watch = () => {
  const age = performance.now() - Math.max(heard, shown);
  const old = !document.hidden && age > STALE;
  document.documentElement.classList.toggle("stale", old);
  stale.hidden = !old;
  if (old) {
    const seconds = Math.round((performance.now() - heard) / 1000);
    stale.textContent = `No answer from the server for ${seconds} s: these figures are older than that.`;
  }
};
if (body.dataset.live !== undefined) {
  listen();
  timer = setTimeout(refresh, EVERY);
  setInterval(watch, 1000);
  addEventListener("pagehide", quiet);
}
