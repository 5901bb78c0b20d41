/** The screen: shows the server's answer for an address, and follows its changes. */
import { duration } from "../../../../core/text.ts";
import { requestsNeed } from "../../../views/room/waiting.ts";
import { dressDiffs, refreshParts } from "./parts.js";
import { changeScreen, showScreen } from "./elements.js";
import { restoreTyped } from "./forms.js";
import { showChoices } from "./choices.js";
import { learnNews, tellNews } from "./notifications.js";
import { showProposed } from "./proposed.js";
import { setText } from "./set-text.js";
import { suggestZone } from "./preview.js";
import { watchEnds } from "./seen.js";
import { showSettings } from "./settings.js";
import { prepare } from "./texts.js";
import { restoreFolders } from "./folders.js";

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

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat([], { day: "numeric", month: "short", year: "numeric" });
const whole = new Intl.DateTimeFormat([], { dateStyle: "short", timeStyle: "medium" });
/** Elements that show their time already. */
const localized = new WeakMap();

/** Shows times in the person's time zone, and updates durations. */
export function localize() {
  for (const element of document.querySelectorAll("time[data-clock]")) {
    if (localized.get(element) === element.dateTime) continue;
    localized.set(element, element.dateTime);
    const time = new Date(element.dateTime);
    const short = clock.format(time);
    setText(element, element.dataset.clock === "day" ? `${day.format(time)}, ${short}` : short);
    element.title = whole.format(time);
  }
  tick();
}

const setIcon = (icon) => {
  const favicon = document.getElementById("favicon");
  if (favicon.getAttribute("href") !== icon) favicon.setAttribute("href", icon);
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

/** The version that is shown, and the address to follow it at. */
export let shown;

/** Shows a screen of the server. */
export async function mount(screen) {
  await prepare(screen.tree);
  document.title = screen.title;
  setIcon(screen.icon);
  showScreen(screen);
  shown = screen;
  waiting = screen.waiting;
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
export function update({ title, icon, waiting: count, mark, ...change }) {
  const held = heldLine();
  if (told !== undefined) endWriting();
  changeScreen({ ...change, isWhole: shown.isWhole });
  shown = { ...shown, mark };
  document.title = title;
  setIcon(icon);
  tell(count);
  localize();
  dress();
  refreshParts();
  if (held) putBack(held);
}

/** Shows the text that the agent writes: `text` behind the first `from` characters. */
export function write({ from, text }) {
  const line = document.getElementById("writing");
  const place = line?.lastElementChild;
  if (!place || place.textContent.length < from) return;
  clearTimeout(told);
  // The next update shows the whole text as a step.
  told = text === "" ? setTimeout(endWriting, TOLD_MS) : undefined;
  if (text === "") return;
  const isAtEnd = place.scrollTop + place.clientHeight > place.scrollHeight - 8;
  if (from === 0) place.textContent = text;
  else place.append(text);
  line.hidden = false;
  if (isAtEnd) place.scrollTop = place.scrollHeight;
}

let told;
const TOLD_MS = 1000;
function endWriting() {
  told = clearTimeout(told);
  const line = document.getElementById("writing");
  if (line) line.hidden = true;
}

/** Announces waiting requests to readers, and to people who turned notifications on. */
function tell(count) {
  tellNews();
  if (count === waiting) return;
  document.getElementById("spoken").textContent = count === 0 ? "You’re all caught up" : requestsNeed(count);
  waiting = count;
}
