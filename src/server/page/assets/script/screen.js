/** The screen: inserts documents of the server into the page, and patches the differences when an update arrives. */
import { duration } from "../../../../core/text.ts";
import { Idiomorph } from "idiomorph";
import { requestsNeed } from "../../../views/room/waiting.ts";
import { dressDiffs, refreshParts } from "./parts.js";
import { isRefused, restoreTyped } from "./forms.js";
import { showChoices } from "./choices.js";
import { learnNews, tellNews } from "./notifications.js";
import { showProposed } from "./proposed.js";
import { setText } from "./set-text.js";
import { suggestZone } from "./preview.js";
import { watchEnds } from "./seen.js";
import { showSettings } from "./settings.js";
import { keepsText, prepare } from "./texts.js";
import { restoreFolders } from "./tree.js";

let waiting = 0;

/** Updates durations. */
export function tick() {
  const now = Date.now();
  for (const element of document.querySelectorAll("[data-since]")) {
    setText(element, duration(now - Number(element.dataset.since)));
  }
  for (const element of document.querySelectorAll("[data-until]")) {
    setText(element, duration(Number(element.dataset.until) - now));
  }
}

/** Shows times in the person's time zone, and updates durations. */
export function localize() {
  for (const element of document.querySelectorAll("time[data-clock]")) {
    const time = new Date(element.dateTime);
    const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    const day = time.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
    setText(element, element.dataset.clock === "day" ? `${day}, ${clock}` : clock);
    element.title = time.toLocaleString();
  }
  tick();
}

const setIcon = (icon) => {
  const favicon = document.getElementById("favicon");
  if (icon && favicon.getAttribute("href") !== icon) favicon.setAttribute("href", icon);
};

/** Addresses as others reach them. */
function completeAddresses() {
  for (const field of document.querySelectorAll("[data-absolute]"))
    field.value = new URL(field.dataset.address, location.href).href;
}

/** Parts that only work with scripts. */
function dress() {
  document.body.classList.add("scripted");
  dressDiffs();
  watchEnds();
  countBelow();
  showSettings();
  showChoices();
  showProposed();
  completeAddresses();
  suggestZone();
}

/** Counts the agents below the visible part of their list. */
function countBelow() {
  const list = document.querySelector(".tl-body");
  if (list === null) return;
  const more = document.querySelector(".tl-more");
  const end = list.getBoundingClientRect().bottom;
  // An agent in a closed fold is where the fold is.
  const placeOf = (row) => (row.checkVisibility() ? row : row.closest("details"));
  const isBelow = (row) => placeOf(row).getBoundingClientRect().bottom > end + HIDDEN_PX;
  const below = [...list.querySelectorAll("[id^=agent-]")].filter(isBelow).length;
  more.hidden = list.scrollHeight <= list.clientHeight + HIDDEN_PX;
  more.classList.toggle("end", below === 0);
  setText(more.firstElementChild, `${below} more ${below === 1 ? "agent" : "agents"}`);
}
/** A row counts as hidden when so much of it is. */
const HIDDEN_PX = 12;
for (const name of ["scroll", "toggle", "resize"]) addEventListener(name, countBelow, true);
addEventListener("click", ({ target }) => {
  if (!target.closest?.(".tl-more")) return;
  const list = document.querySelector(".tl-body");
  list.scrollBy({ top: list.clientHeight });
});

/** Shows a whole document of the server. Scripts in it would not run; there are none. */
export async function mount(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  await prepare(page.body);
  document.title = page.title;
  setIcon(page.getElementById("favicon")?.getAttribute("href"));
  document.body.replaceChildren(...page.body.childNodes);
  waiting = Number(document.querySelector(".count.amber")?.textContent ?? 0);
  learnNews();
  localize();
  restoreTyped();
  dress();
  void restoreFolders();
  document.querySelector("dialog[data-opened]")?.showModal();
  if (location.hash === "") document.querySelector("[autofocus], .ask")?.focus({ preventScroll: true });
  else goToTarget();
}

/** Finds the place that the address names. The browser looked for it before the screen was loaded. */
function goToTarget() {
  location.replace(location.href);
  focusTarget();
}

/** Focuses the request or field that a link leads to, so that its keys work, and one can type. */
export function focusTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches(".ask, textarea, input")) target.focus();
}

const isTyped = (element) =>
  (element instanceof HTMLTextAreaElement && element.value !== element.defaultValue) ||
  (element instanceof HTMLInputElement &&
    (/^(?:radio|checkbox)$/.test(element.type)
      ? element.checked !== element.defaultChecked
      : element.value !== element.defaultValue));

/* The field in which a person is, before anything is typed. A request with the focus is updated. */
const isInUse = (element) => element === document.activeElement && element.matches("input, textarea, select");

/** Set by the script alone. */
const OWN_ATTRIBUTES = ["data-stuck", "data-up", "style"];

/* A complaint, and the text that it is about, stay until the next page. */
const isAlert = (node) => node instanceof Element && node.matches(".notice[role=alert]");
const isComplaint = (node) => node instanceof HTMLFormElement && [...node.children].some(isAlert);

/** Position of the mouse, because `:hover` is late after updates. */
let mouse;
addEventListener("pointermove", ({ clientX, clientY, pointerType }) => {
  mouse = pointerType === "mouse" ? [clientX, clientY] : undefined;
});
document.documentElement.addEventListener("pointerleave", () => (mouse = undefined));

/** The line of a live list that a person points at, has the focus in, or reads below newer lines out of sight. */
function heldLine() {
  const places = [mouse && document.elementFromPoint(...mouse), document.activeElement];
  const [own] = places.flatMap((place) => place?.closest(":is(.steps, .feed) li[id]") ?? []);
  const bar = document.querySelector(".top")?.getBoundingClientRect().bottom ?? 0;
  const isRead = (list) =>
    list.getBoundingClientRect().top < bar && list.getBoundingClientRect().bottom > bar;
  const list = own ?? [...document.querySelectorAll(".steps, .feed")].find(isRead);
  const lines = own ? [own] : [...(list?.querySelectorAll("li[id]") ?? [])];
  const line = lines.find((one) => one.checkVisibility() && one.getBoundingClientRect().top >= bar);
  return line && { id: line.id, top: line.getBoundingClientRect().top };
}

/** Scrolls so that a line stands where it was. A fold that it went into is opened. */
function putBack({ id, top }) {
  const line = document.getElementById(id);
  const fold = line?.checkVisibility() === false && line.parentElement.closest("details");
  if (fold) fold.open = true;
  if (!line?.checkVisibility()) return;
  const by = line.getBoundingClientRect().top - top;
  const missing = by - (document.body.getBoundingClientRect().bottom - innerHeight);
  const main = document.getElementById("main");
  // A page that ends there gets room to scroll.
  if (missing > 0)
    main.style.paddingBottom = `${parseFloat(getComputedStyle(main).paddingBottom) + missing}px`;
  scrollBy(0, by);
}

/** Changes the screen in place, so that focus, scrolling, the line that is read and typed text stay. */
export function update({ title, icon, html, waiting: count }) {
  const held = heldLine();
  void Idiomorph.morph(document.getElementById("screen"), html, {
    morphStyle: "innerHTML",
    callbacks: {
      beforeNodeMorphed: (old, now) =>
        !keepsText(old, now) &&
        !isTyped(old) &&
        !isInUse(old) &&
        old.dataset?.mounted === undefined &&
        !isComplaint(old),
      beforeNodeRemoved: (old) => !isAlert(old),
      // A part that a person opened stays open where it is, and a disabled button stays disabled.
      beforeAttributeUpdated: (name, element) =>
        !(name === "open" && /^(?:DETAILS|DIALOG)$/.test(element.tagName)) &&
        !OWN_ATTRIBUTES.includes(name) &&
        !(element.tagName === "BUTTON" && isRefused(element)),
    },
  });
  document.title = title;
  setIcon(icon);
  tell(count);
  localize();
  dress();
  refreshParts();
  if (held) putBack(held);
}

/** Announces waiting requests to readers, and to people who turned notifications on. */
function tell(count) {
  tellNews();
  if (count === waiting) return;
  document.getElementById("spoken").textContent = count === 0 ? "You’re all caught up" : requestsNeed(count);
  waiting = count;
}
