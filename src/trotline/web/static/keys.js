// Keys: "/" to the search field, "g" and a letter to a page, "?" for the list. Not while typing.
const typing = (target) => target instanceof Element && target.closest("input, select, textarea, [contenteditable]");
let waits = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "/") {
    const field = document.querySelector("[data-search]");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  } else if (event.key === "?") {
    document.getElementById("keys")?.showModal();
  } else if (event.key === "g") {
    waits = event.timeStamp;
  } else if (waits && event.timeStamp - waits < 1500 && /^[a-z]$/.test(event.key)) {
    document.querySelector(`a[data-key="${event.key}"]`)?.click();
    waits = 0;
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-show-keys]")) document.getElementById("keys")?.showModal();
});
// A button of a form that runs in batches is pressed again until nothing is left, or somebody stops it.
const again = document.querySelector("[data-press-again]");
const stop = document.querySelector("[data-stop]");
if (again && stop) {
  stop.hidden = false;
  const timer = setTimeout(() => again.click(), 400);
  stop.addEventListener("click", (event) => { event.preventDefault(); clearTimeout(timer); stop.hidden = true; });
}
