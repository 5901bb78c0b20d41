/**
 * Keeps the page up to date. The server sends HTML it has escaped; what a person is typing stays, and where
 * they have scrolled to.
 */
"use strict";
const main = document.querySelector("main[data-run]");
const run = document.getElementById("run");
const approvals = document.getElementById("approvals");
const connection = document.getElementById("connection");
const idOf = (element) => element.dataset.approval;
function showRun(text) {
  const scrolled = run.querySelector(".events")?.scrollTop ?? 0;
  const focused = run.querySelector(".events") === document.activeElement;
  run.innerHTML = text;
  const events = run.querySelector(".events");
  if (events) {
    events.scrollTop = scrolled;
    if (focused) events.focus();
  }
}
function showApprovals(text) {
  const next = document.createElement("div");
  next.innerHTML = text;
  const shown = new Map([...approvals.querySelectorAll("[data-approval]")].map((item) => [idOf(item), item]));
  const items = [...next.querySelectorAll("[data-approval]")];
  const wanted = new Set(items.map(idOf));
  for (const [id, item] of shown) if (!wanted.has(id)) item.remove();
  for (const item of items) if (!shown.has(idOf(item))) approvals.append(item);
}
const updates = new EventSource(main.dataset.run + "/updates");
updates.addEventListener("update", ({ data }) => {
  const update = JSON.parse(data);
  connection.textContent = "";
  showRun(update.run);
  showApprovals(update.approvals);
  if (update.ended) updates.close();
});
updates.addEventListener("error", () => {
  connection.textContent = "Not connected: the server has ended or is busy. What is shown may be old.";
});
