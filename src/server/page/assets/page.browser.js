/**
 * Keeps the page up to date, and takes keys. The server sends whole screens that it has escaped; what differs is
 * changed in place, so that focus, scrolling and what a person types stay.
 */
import { Idiomorph } from "idiomorph";
import { duration } from "../../views/room/duration.ts";
import { decisionsWaitForYou } from "../../views/room/waiting.ts";

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

/* What went wrong, and what was typed then, stays to be read until the next page. */
const isAlert = (node) => node instanceof Element && node.matches(".notice[role=alert]");
const isComplaint = (node) => node instanceof HTMLFormElement && [...node.children].some(isAlert);

function show({ title, icon, html, waiting: count }) {
  void Idiomorph.morph(screen, html, {
    morphStyle: "innerHTML",
    ignoreActiveValue: true,
    callbacks: {
      beforeNodeMorphed: (old) => !isTyped(old) && old.dataset?.mounted === undefined && !isComplaint(old),
      beforeNodeRemoved: (old) => !isAlert(old),
      // What a person has opened stays open, and a button that is off stays off.
      beforeAttributeUpdated: (name, element) =>
        !(name === "open" && element.tagName === "DETAILS") &&
        !(element.tagName === "BUTTON" && refused.has(element)),
    },
  });
  document.title = title;
  const favicon = document.getElementById("favicon");
  if (favicon.getAttribute("href") !== icon) favicon.setAttribute("href", icon);
  tell(count);
  localize();
  dress();
  refreshParts();
}

/** Says what waits to those who do not look: readers, and a notification if the person allows it. */
function tell(count) {
  if (count === waiting) return;
  const text = decisionsWaitForYou(count);
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
  document.body.classList.add("scripted");
  dressDiffs();
  watchEnds();
}

/** Both sides of diffs beside each other, if this browser wants it. Unchanged lines are on both sides then. */
function dressDiffs() {
  const isSplit = localStorage.getItem("diffs") === "split";
  document.body.classList.toggle("split-diffs", isSplit);
  for (const button of document.querySelectorAll("[data-diffs]")) {
    button.setAttribute("aria-pressed", String((button.dataset.diffs === "split") === isSplit));
  }
  if (!isSplit) return;
  for (const { cells } of document.querySelectorAll(".diff tr.c")) {
    if (cells.length > 4) continue;
    const twin = cells[3].cloneNode(true);
    twin.classList.add("twin");
    twin.setAttribute("aria-hidden", "true");
    cells[3].after(twin);
  }
}

function setLive(isLive) {
  document.querySelector(".dot")?.classList.toggle("off", !isLive);
  if (word !== null) setText(document.getElementById("live-word"), isLive ? "Live" : "Not connected");
  document.body.classList.toggle("offline", !isLive);
  for (const button of document.querySelectorAll("form[method=post] button:not([hidden])")) judge(button);
}

/** Buttons that would send something wrong, and what is wrong with it. */
const refused = new WeakMap();

function judge(button) {
  const reason = document.body.classList.contains("offline")
    ? "The server does not answer. What you typed stays; this comes back by itself."
    : refused.get(button);
  button.disabled = reason !== undefined;
  button.title = reason ?? "";
}

/* What is typed is edited with an editor as soon as that is there, and in a field of text without it. */
const EDITING = "details[data-fold=edit][open]";
const EDITOR = new URL("editor.js", document.currentScript.src).href;
async function edit(fold) {
  const editor = await import(EDITOR);
  editor.edit(fold, (button, problem) => {
    if (problem === undefined) refused.delete(button);
    else refused.set(button, problem);
    judge(button);
  });
}
const tryEdit = (fold) => void edit(fold).catch(() => undefined);
addEventListener(
  "toggle",
  ({ target }) => {
    if (!target.matches?.(EDITING)) return;
    tryEdit(target);
    target.closest("form").scrollIntoView();
  },
  true,
);

/*
 * A browser has six connections to a server, for streams and everything else. So only pages that are seen keep a
 * stream, and of the others the one that was opened first, which tells at once what waits. The rest look now and then.
 */
const LOOK_MS = 10_000;
let isFirst = false;
let updates;
let next;
let offline;

/** A stream that breaks off is asked for again with the mark of its newest update, by the browser itself. */
function follow() {
  clearTimeout(next);
  updates?.close();
  const address = new URL(screen.dataset.address ?? location.href, location.href);
  address.searchParams.set("mark", screen.dataset.mark);
  const isLook = document.hidden && !isFirst;
  if (isLook) address.searchParams.set("once", "");
  updates = new EventSource(address.pathname + address.search);
  updates.addEventListener("open", () => {
    clearTimeout(offline);
    setLive(true);
  });
  updates.addEventListener("update", ({ data, lastEventId }) => {
    screen.dataset.mark = lastEventId;
    show(JSON.parse(data));
  });
  updates.addEventListener("end", () => {
    updates.close();
    if (isLook) next = setTimeout(follow, LOOK_MS);
  });
  updates.addEventListener("error", () => {
    clearTimeout(offline);
    offline = setTimeout(() => setLive(false), 1500);
    // A browser gives up on an answer that is no stream, such as that of a server that is just starting.
    if (updates.readyState === EventSource.CLOSED) next = setTimeout(() => void followAgain(), 2000);
  });
}
/* By the status with which the server answers a browser that it does not know any more. */
const ENDED = { 401: "Logged out: reload to log in", 404: "Session ended: open the page again" };
async function followAgain() {
  const answer = await fetch(location.href, { method: "HEAD" }).catch(() => undefined);
  const ended = ENDED[answer?.status];
  if (ended === undefined) return follow();
  clearTimeout(offline);
  setLive(false);
  setText(document.getElementById("live-word"), ended);
}
if (word !== null) {
  follow();
  document.addEventListener("visibilitychange", () => isFirst || follow());
  void navigator.locks?.request("first page", () => {
    isFirst = true;
    if (document.hidden) follow();
    return new Promise(() => undefined);
  });
}

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

/* So do folds that a person opened or closed. */
const foldKey = ({ id }) => `fold ${location.pathname} ${id}`;
for (const fold of document.querySelectorAll("details[data-kept]")) {
  const kept = sessionStorage.getItem(foldKey(fold));
  if (kept !== null) fold.open = kept === "open";
}
addEventListener(
  "toggle",
  ({ target }) => {
    if (target.matches?.("[data-kept]"))
      sessionStorage.setItem(foldKey(target), target.open ? "open" : "closed");
  },
  true,
);

/* Keys. None decides outside the request that has the focus. */
const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
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
  const field = fold.querySelector("textarea");
  const editor = fold.querySelector("[data-mounted] > div")?.shadowRoot;
  (editor?.querySelector("[contenteditable]") ?? field)?.focus();
};
const go = (selector) => document.querySelector(selector)?.click();

const ACTIONS = {
  "/": () => document.getElementById("q")?.focus(),
  n: () => (document.getElementById("task") ? document.getElementById("task").focus() : go("a.brand")),
  r: () => go('.review-bar a, .top-nav a[href$="/review"]'),
  j: () => focusRow(1),
  k: () => focusRow(-1),
  a: () => request()?.querySelector("button[value=approve]")?.click(),
  e: () => unfold("edit"),
  x: () => unfold("reject"),
  m: () => document.getElementById("tell")?.focus(),
  w: () => document.body.classList.toggle("wrapped"),
  "?": () => document.getElementById("keys").showModal(),
};

/** Presses the button that a field belongs to: a form may have several, one for each decision. */
function send(field) {
  const part = field.closest(".more-form") ?? field.form;
  const button = part.querySelector("button:not([type=button], [disabled])");
  if (button !== null) field.form.requestSubmit(button);
}

addEventListener("keydown", (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (event.defaultPrevented || event.composedPath()[0].isContentEditable) return;
  if ((ctrlKey || metaKey) && key === "Enter" && target.form) return send(target);
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

/* A call is approved after its end was on the screen, or on a second press. */
const seenCalls = new Set();
const warned = new Set();
/* The buttons stay at the end of the screen, over what is below them. */
const BEFORE_BUTTONS = { rootMargin: "0px 0px -72px" };
const callSeen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) seenCalls.add(target.closest("[data-approval]").dataset.approval);
  }
}, BEFORE_BUTTONS);
function watchEnds() {
  callSeen.disconnect();
  for (const end of document.querySelectorAll("[data-end]")) callSeen.observe(end);
}
/** True if the end of the call is above the buttons, or was. */
function isSeen(request) {
  const end = request.querySelector("[data-end]");
  const bottom = request.querySelector(".ask-foot").getBoundingClientRect().top;
  return (
    seenCalls.has(request.dataset.approval) ||
    end === null ||
    end.getBoundingClientRect().bottom <= bottom + 1
  );
}
addEventListener(
  "click",
  (event) => {
    const button = event.target.closest?.("button[name=decision][value^=approve]");
    const request = button?.closest("[data-approval]");
    if (!request || isSeen(request) || warned.has(request.dataset.approval)) return;
    event.preventDefault();
    warned.add(request.dataset.approval);
    const warning = document.createElement("p");
    warning.className = "notice amber";
    warning.setAttribute("role", "alert");
    warning.textContent = "The end of this call was not on the screen yet. Press again to approve it unseen.";
    button.form.prepend(warning);
  },
  true,
);

addEventListener("click", ({ target }) => {
  const look = target.closest?.("[data-diffs]");
  if (look) {
    localStorage.setItem("diffs", look.dataset.diffs);
    dressDiffs();
  }
  if (target.closest?.("[data-keys]")) {
    document.getElementById("keys").showModal();
    if (globalThis.Notification?.permission === "default") void Notification.requestPermission();
  }
});

/* What a link leads to is shown below it; without scripts it is a page of its own. */
async function partAt(address) {
  const response = await fetch(address).catch(() => undefined);
  if (!response?.ok) return null;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.querySelector("[data-part]");
}

async function showPart(link) {
  const box = link.parentElement;
  const isOpen = "mounted" in box.dataset;
  if (isOpen) {
    box.querySelector("[data-part]").remove();
    delete box.dataset.mounted;
  } else {
    box.dataset.mounted = "";
    const part = await partAt(link.href);
    if (part === null) return location.assign(link.href);
    box.append(part);
  }
  link.setAttribute("aria-expanded", String(!isOpen));
  link.firstChild.data = isOpen ? "Show all" : "Hide";
}

/** Gets the results of steps that were opened before their calls ended. */
function refreshParts() {
  for (const link of document.querySelectorAll("[data-ended] [data-inline]:has(~ [data-part=open])")) {
    void busy(link, refreshPart);
  }
}

async function refreshPart(link) {
  const part = await partAt(link.href);
  if (part !== null) void Idiomorph.morph(link.nextElementSibling, part);
}

/** Unchanged lines take the place of the link to them. Updates leave the diff as it is then. */
async function showLines(link) {
  const part = await partAt(link.href);
  if (part === null) return location.assign(link.href);
  const diff = link.closest(".diff");
  const rows = part.querySelectorAll("tbody");
  diff.dataset.mounted = "";
  if (rows.length === 0) link.replaceWith(part.textContent.trim());
  else link.closest("tbody").replaceWith(...rows);
  diff.focus({ preventScroll: true });
}

addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-inline], a[data-lines]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  void busy(link, "lines" in link.dataset ? showLines : showPart).then(refreshParts);
});

/** Follows a link in place, unless that is under way already. */
async function busy(link, show) {
  if (link.getAttribute("aria-busy") === "true") return;
  link.setAttribute("aria-busy", "true");
  await show(link).finally(() => link.removeAttribute("aria-busy"));
  dressDiffs();
}

/** A link to a request gives it the focus, so that its keys work. */
function focusTarget() {
  const id = location.hash.slice(1);
  if (id.startsWith("a-")) document.getElementById(id)?.focus();
}
addEventListener("hashchange", focusTarget);

waiting = Number(document.querySelector(".count.amber")?.textContent ?? 0);
localize();
dress();
document.querySelectorAll(EDITING).forEach(tryEdit);
focusTarget();
if (location.hash === "" && document.querySelector(".ask"))
  document.querySelector(".ask").focus({ preventScroll: true });
setInterval(tick, 1000);
