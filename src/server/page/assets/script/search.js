/** Searches while a person types: everything in the box over the screen, and the list of runs in its place. */
import { follow } from "./live.js";
import { partAt } from "./parts.js";
import { localize, update } from "./screen.js";
import { setText } from "./set-text.js";
import { isOurs, request } from "./session.js";

/** A pause in typing, in milliseconds, after which a search begins. */
const PAUSE_MS = 80;
const isMac = /Mac|iP/.test(navigator.platform);
document.body.classList.toggle("on-mac", isMac);

let pause;
let search = new AbortController();
/** True if Enter was pressed before the results arrived. */
let opens = false;
let isBusy = false;

const inputOf = (finder) => finder.querySelector("input");
const hitsOf = (finder) => [...finder.querySelectorAll("[role=option]")];
const chosenIn = (finder) => finder.querySelector("[aria-selected=true]") ?? finder.querySelector(".start a");

/** Opens the box, or focuses its field. */
export function openFinder() {
  const dialog = document.getElementById("finder");
  const field = document.getElementById(dialog === null ? "q" : "query") ?? document.getElementById("query");
  if (dialog !== null && !dialog.open) {
    dialog.showModal();
    void find(dialog);
  }
  field?.focus();
  field?.select();
}

function addressFor(finder, kind) {
  const address = new URL(finder.querySelector("form").action);
  address.searchParams.set("q", inputOf(finder).value);
  if (kind !== "") address.searchParams.set("kind", kind);
  return address;
}

/** Finds names first, then contents. The search before it ends. */
async function find(finder, kind = finder.querySelector(".finder-found").dataset.kind ?? "") {
  search.abort();
  const { signal } = (search = new AbortController());
  isBusy = true;
  const address = addressFor(finder, kind);
  if (finder.id === "") history.replaceState(null, "", address);
  const run = /\/runs\/([^/]+)/.exec(location.pathname)?.[1];
  if (run !== undefined) address.searchParams.set("run", decodeURIComponent(run));
  for (const part of ["names", "all"]) {
    address.searchParams.set("part", part);
    const found = await partAt(address, { signal });
    if (signal.aborted) return;
    if (found === null) break;
    show(finder, found);
  }
  isBusy = false;
  if (opens) open(finder);
}

function show(finder, found) {
  const before = chosenIn(finder)?.id;
  finder.querySelector(".finder-found").replaceWith(found);
  localize();
  const hits = hitsOf(finder);
  choose(finder, hits.find(({ id }) => id === before && wasMoved) ?? hits[0]);
  inputOf(finder).setAttribute("aria-expanded", String(hits.length > 0));
  setText(finder.querySelector("[role=status]"), found.dataset.told);
}

/** A person chose a result with the arrows; it stays chosen while more results come. */
let wasMoved = false;

function choose(finder, hit) {
  for (const other of hitsOf(finder)) other.setAttribute("aria-selected", String(other === hit));
  hit?.scrollIntoView({ block: "nearest" });
  if (hit === undefined) inputOf(finder).removeAttribute("aria-activedescendant");
  else inputOf(finder).setAttribute("aria-activedescendant", hit.id);
}

function move(finder, step) {
  const hits = hitsOf(finder);
  const at = hits.findIndex((hit) => hit.getAttribute("aria-selected") === "true");
  wasMoved = true;
  choose(finder, hits[Math.min(hits.length - 1, Math.max(0, at + step))]);
}

function nextKind(finder, step) {
  const kinds = [...finder.querySelectorAll(".finder-kinds a")];
  const at = kinds.findIndex((kind) => kind.hasAttribute("aria-current"));
  kinds[(at + step + kinds.length) % kinds.length]?.click();
}

/** Follows the chosen result like a click with the same keys. */
function open(finder, { ctrlKey, metaKey } = {}) {
  opens = false;
  chosenIn(finder)?.dispatchEvent(
    new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey, metaKey }),
  );
}

const KEYS = {
  ArrowDown: (finder) => move(finder, 1),
  ArrowUp: (finder) => move(finder, -1),
  Tab: (finder, { shiftKey }) => nextKind(finder, shiftKey ? -1 : 1),
  Enter(finder, event) {
    if (isBusy) opens = true;
    else open(finder, event);
  },
  Escape: (finder) => finder.close?.(),
};

document.addEventListener("keydown", (event) => {
  const { target, key, isComposing, altKey, shiftKey } = event;
  if (event.defaultPrevented || isComposing) return;
  const isCall = key.toLowerCase() === "k" && (isMac ? event.metaKey : event.ctrlKey) && !altKey && !shiftKey;
  const action = isCall ? openFinder : target.id === "query" ? KEYS[key] : undefined;
  if (action === undefined) return;
  event.preventDefault();
  action(target.closest(".finder"), event);
});

document.addEventListener("click", (event) => {
  const { target } = event;
  const isPlain = !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const finder = target.closest?.(".finder");
  const link = target.closest?.("a");
  if (link?.matches("[data-find]") && isPlain) {
    event.preventDefault();
    openFinder();
  } else if (finder?.id === "finder" && (target === finder || target.closest("[data-close]"))) finder.close();
  else if (finder && isPlain && link?.matches(".finder-kinds a, .more")) {
    event.preventDefault();
    wasMoved = false;
    void find(finder, new URL(link.href).searchParams.get("kind") ?? "");
    inputOf(finder).focus();
  } else if (finder?.id === "finder" && isPlain && link) finder.close();
});

/** Shows the runs that a search finds, in place. */
async function filter(form) {
  search.abort();
  const { signal } = (search = new AbortController());
  const address = new URL(form.action);
  for (const [name, value] of new FormData(form)) if (value !== "") address.searchParams.set(name, value);
  const response = await request(address, { signal }).catch(() => undefined);
  if (!response?.ok || !isOurs(response)) return;
  const screen = await response.json();
  if (signal.aborted) return;
  history.replaceState(null, "", address);
  update(screen);
  follow();
}

/** A text that is still composed, such as Chinese, is not searched for yet. */
function typed({ target, isComposing }) {
  const finder = target.id === "query" && target.closest(".finder");
  const form = target.closest?.("form[data-live]");
  if (isComposing || !(finder || form)) return;
  search.abort();
  clearTimeout(pause);
  opens = wasMoved = false;
  isBusy = true;
  pause = setTimeout(() => void (finder ? find(finder) : filter(form)), PAUSE_MS);
}
addEventListener("input", typed);
addEventListener("compositionend", ({ target }) => typed({ target }));
addEventListener("submit", (event) => {
  const { target } = event;
  if (!target.matches("[data-live]")) return;
  event.preventDefault();
  clearTimeout(pause);
  void filter(target);
});
