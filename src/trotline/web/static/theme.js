// Before the first paint: the theme that was chosen here. Without a choice, that of the system.
"use strict";
(() => {
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const kept = read();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* Not kept for the next page: storage is forbidden here. */ }
  });
  // Shown by scripts only: without them the system decides.
  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-theme-toggle], [data-needs-script]")) button.hidden = false;
  });
})();
