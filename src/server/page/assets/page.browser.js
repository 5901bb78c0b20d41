/**
 * Keeps the page up to date, and takes keys. The server sends whole screens that it has escaped; what differs is
 * changed in place, so that focus, scrolling and what a person types stay.
 */
import { Idiomorph } from "idiomorph";
import { duration } from "../../views/room/duration.ts";

const screen = document.getElementById("screen");
const word = document.getElementById("live-word");
let waiting = 0;

/** Times are told in the person's own time zone, durations go on. */
function tick() {
  const now = Date.now();
  for (const element of document.querySelectorAll("[data-since]")) {
    setText(element, duration(now - Number(element.dataset.since)));
  }
}

function localize() {
  for (const element of document.querySelectorAll("time[data-clock]")) {
    const time = new Date(element.dateTime);
    const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    const day = time.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
    setText(element, element.dataset.clock === "day" ? `${day}, ${clock}` : clock);
    element.title = time.toLocaleString();
  }
  tick();
}

const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

const isTyped = (element) =>
  (element instanceof HTMLTextAreaElement && element.value !== element.defaultValue) ||
  (element instanceof HTMLInputElement &&
    (element.type === "radio"
      ? element.checked !== element.defaultChecked
      : element.value !== element.defaultValue));

function show({ title, icon, html, waiting: count }) {
  void Idiomorph.morph(screen, html, {
    morphStyle: "innerHTML",
    ignoreActiveValue: true,
    callbacks: {
      beforeNodeMorphed: (old) => !isTyped(old),
      // What a person has opened stays open.
      beforeAttributeUpdated: (name, element) => !(name === "open" && element.tagName === "DETAILS"),
    },
  });
  document.title = title;
  const favicon = document.getElementById("favicon");
  if (favicon.getAttribute("href") !== icon) favicon.setAttribute("href", icon);
  tell(count);
  localize();
  dress();
}

/** Says what waits to those who do not look: readers, and a notification if the person allows it. */
function tell(count) {
  if (count === waiting) return;
  const text = count === 1 ? "1 decision waits for you" : `${count} decisions wait for you`;
  document.getElementById("spoken").textContent = count === 0 ? "Nothing waits for you" : text;
  if (count > waiting && document.hidden && globalThis.Notification?.permission === "granted") {
    const shown = new Notification("deepagent", { body: text, tag: "deepagent-waiting" });
    shown.addEventListener("click", () => focus());
  }
  waiting = count;
}

/** Parts that only work with scripts. */
function dress() {
  const help = document.querySelector("[data-keys]");
  if (help !== null) help.hidden = false;
}

function setLive(isLive) {
  document.querySelector(".dot")?.classList.toggle("off", !isLive);
  if (word !== null) setText(document.getElementById("live-word"), isLive ? "Live" : "Not connected");
  document.body.classList.toggle("offline", !isLive);
  for (const button of document.querySelectorAll("form[method=post] button:not([hidden])")) {
    button.disabled = !isLive;
    button.title = isLive
      ? ""
      : "The server does not answer. What you typed stays; this comes back by itself.";
  }
}

let offline;
function follow() {
  const updates = new EventSource(location.pathname + location.search);
  updates.addEventListener("open", () => {
    clearTimeout(offline);
    setLive(true);
  });
  updates.addEventListener("update", ({ data }) => show(JSON.parse(data)));
  updates.addEventListener("end", () => updates.close());
  updates.addEventListener("error", () => {
    clearTimeout(offline);
    offline = setTimeout(() => setLive(false), 1500);
    // A browser gives up on an answer that is no stream, such as that of a server that is just starting.
    if (updates.readyState === EventSource.CLOSED) setTimeout(follow, 2000);
  });
}
if (word !== null) follow();

/* Drafts outlive a reload. */
const draftKey = (field) => `draft ${location.pathname} ${field.id}`;
addEventListener("input", ({ target }) => {
  if (target.matches?.("[data-draft]")) sessionStorage.setItem(draftKey(target), target.value);
});
for (const field of document.querySelectorAll("[data-draft]")) {
  field.value = sessionStorage.getItem(draftKey(field)) ?? field.value;
}
addEventListener("submit", ({ target }) => {
  for (const field of target.querySelectorAll("[data-draft]")) sessionStorage.removeItem(draftKey(field));
});

/* Keys. None decides outside the request that has the focus. */
const rows = () => [...document.querySelectorAll("[data-row]")];
const focusRow = (step) => {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  all[Math.min(all.length - 1, Math.max(0, at + step))]?.focus();
};
const request = () => document.activeElement?.closest("[data-approval]");
const unfold = (name) => {
  const fold = request()?.querySelector(`details[data-fold=${name}]`);
  if (!fold) return;
  fold.open = true;
  fold.querySelector("textarea")?.focus();
};
const go = (selector) => document.querySelector(selector)?.click();

const ACTIONS = {
  "/": () => document.getElementById("q")?.focus(),
  n: () => (document.getElementById("task") ? document.getElementById("task").focus() : go('a[href="/"]')),
  r: () => go('.review-bar a, .top-nav a[href="/review"]'),
  j: () => focusRow(1),
  k: () => focusRow(-1),
  a: () => request()?.querySelector("button[value=approve]")?.click(),
  e: () => unfold("edit"),
  x: () => unfold("reject"),
  m: () => document.getElementById("tell")?.focus(),
  w: () => document.body.classList.toggle("wrapped"),
  "?": () => document.getElementById("keys").showModal(),
};

addEventListener("keydown", (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if ((ctrlKey || metaKey) && key === "Enter" && target.form) return target.form.requestSubmit();
  if (target.matches?.("input:not([type=radio]), textarea, select")) {
    if (key === "Escape") target.blur();
    return;
  }
  if (ctrlKey || metaKey || altKey || event.repeat) return;
  const action = ACTIONS[key.toLowerCase()];
  if (action === undefined) return;
  event.preventDefault();
  action();
});

addEventListener("click", ({ target }) => {
  if (target.closest?.("[data-keys]")) {
    document.getElementById("keys").showModal();
    if (globalThis.Notification?.permission === "default") void Notification.requestPermission();
  }
});

/** A link to a request gives it the focus, so that its keys work. */
function focusTarget() {
  const id = location.hash.slice(1);
  if (id.startsWith("a-")) document.getElementById(id)?.focus();
}
addEventListener("hashchange", focusTarget);

waiting = Number(document.querySelector(".count.amber")?.textContent ?? 0);
localize();
dress();
focusTarget();
if (location.hash === "" && document.querySelector(".ask"))
  document.querySelector(".ask").focus({ preventScroll: true });
setInterval(tick, 1000);
