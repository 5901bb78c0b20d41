/**
 * The page. Each address answers the same empty document; this script gets the screen with the session of its tab,
 * shows it and keeps it up to date. The server escapes all that it sends.
 */
import "./script/copy.js";
import { send } from "./script/forms.js";
import "./script/keys.js";
import { end, follow, missAnswer } from "./script/live.js";
import "./script/menus.js";
import "./script/downloads.js";
import { loadCode, loadMarkdown } from "./script/modules.js";
import "./script/preview.js";
import { focusTarget, mount, tick } from "./script/screen.js";
import { askOtherTabs, isOurs, keep, request } from "./script/session.js";
import { showTexts } from "./script/texts.js";

const addressOf = ({ pathname, search }) => pathname + search;
/** The address whose screen is shown. */
let shown = addressOf(location);

/** Shows an answer of the server: a screen, a notice, a text, or a session to keep and an address to go to. */
async function show(response) {
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("application/json")) {
    const text = await response.text();
    // A text that is not a document, such as a file, is never read as one.
    return type.startsWith("text/html") ? showNotice(text) : showText(text);
  }
  const { at, session, ...screen } = await response.json();
  if (at !== undefined) {
    keep(session);
    return location.replace(at);
  }
  await mount(screen);
  follow();
}

/** Shows a document. Scripts in it would not run; there are none. */
function showNotice(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes);
  document.querySelector("[autofocus]")?.focus({ preventScroll: true });
}

function showText(text) {
  const shown = Object.assign(document.createElement("pre"), { className: "plain", textContent: text });
  document.body.replaceChildren(shown);
}

/** The code of a link stands behind `#`, and is exchanged for a session. */
const enter = () =>
  request(location.pathname, { method: "POST", body: new URLSearchParams({ code: location.hash.slice(1) }) });

async function load() {
  if (/\/(?:open|shared)$/.test(location.pathname)) {
    const entered = enter();
    history.replaceState(null, "", location.pathname);
    return show(await entered);
  }
  await askOtherTabs();
  const response = await request(shown);
  if (!isOurs(response)) keep(undefined);
  await show(response);
  restoreScrolling();
}

/** Answers that lead on change the address, as they do without a script. */
async function showAnswer(response) {
  const isScreen = document.getElementById("screen") !== null;
  if (isScreen && !isOurs(response)) return end();
  if (response.redirected && response.ok) {
    shown = addressOf(new URL(response.url));
    if (shown === addressOf(location)) history.replaceState(null, "", shown);
    else history.pushState(null, "", shown);
  }
  await show(response);
  showWrong();
}

/** Scrolls to the refused input. */
function showWrong() {
  const wrong = document.querySelector("[data-wrong]") ?? document.querySelector(".ask [role=alert]");
  if (wrong === null) return scrollTo(0, 0);
  wrong.scrollIntoView({ block: "center" });
  const field = wrong.matches(".field") ? wrong : wrong.querySelector("input");
  (field ?? wrong.closest(".ask")).focus({ preventScroll: true });
}

addEventListener("submit", (event) => {
  const { target, submitter } = event;
  if (target.method !== "post") return;
  event.preventDefault();
  send(target, submitter, showAnswer).catch(missAnswer);
});
addEventListener("popstate", () => {
  if (addressOf(location) !== shown) location.reload();
});
addEventListener("hashchange", focusTarget);
/* The address may name the place already. */
addEventListener("click", ({ target }) => {
  if (target.closest?.('a[href*="#"]')) setTimeout(focusTarget);
});

/* The browser looks for the old place before the screen is loaded. */
const scrollKey = () => `scroll ${shown}`;
addEventListener("pagehide", () => sessionStorage.setItem(scrollKey(), String(scrollY)));
function restoreScrolling() {
  const [{ type }] = performance.getEntriesByType("navigation");
  if (type !== "navigate" && location.hash === "") scrollTo(0, Number(sessionStorage.getItem(scrollKey())));
}

showTexts({ markdown: loadMarkdown, code: loadCode });
setInterval(tick, 1000);
void load();
