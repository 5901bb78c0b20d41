/** Keeps the screen up to date, and says when that is not possible any more. */
import { judge } from "./forms.js";
import { setText, update } from "./screen.js";
import { isLinked, isOurs, keep, request } from "./session.js";

/*
 * A browser has six connections to a server, for streams and everything else. So only pages that are seen keep a
 * stream, and of the others the one that was opened first, which tells at once what waits. The rest look now and then.
 */
const LOOK_MS = 10_000;
const AGAIN_MS = 2000;
/** A break that is shorter is not told. */
const BREAK_MS = 1500;
let isFirst = false;
let isEnded = false;
let stream = new AbortController();
let next;
let offline;

/** Follows the screen that is shown; a stream that breaks off is asked for again with the mark of its newest update. */
export function follow() {
  clearTimeout(next);
  stream.abort();
  if (isEnded || document.getElementById("live-word") === null) return;
  stream = new AbortController();
  void followOnce(document.hidden && !isFirst, stream.signal);
}

async function followOnce(isLook, signal) {
  const isOver = await read(isLook, signal).catch(() => false);
  if (signal.aborted || isEnded || (isOver && !isLook)) return;
  if (!isOver) offline ??= setTimeout(lose, BREAK_MS);
  next = setTimeout(follow, isOver ? LOOK_MS : AGAIN_MS);
}

/** Reads updates until the stream ends. True: the server ended it; false: it broke off. */
async function read(isLook, signal) {
  const screen = document.getElementById("screen");
  const address = new URL(screen.dataset.address ?? location.href, location.href);
  address.searchParams.set("mark", screen.dataset.mark);
  if (isLook) address.searchParams.set("once", "");
  const headers = { accept: "text/event-stream" };
  const response = await request(address.pathname + address.search, { headers, signal });
  if (!isOurs(response)) {
    end();
    return false;
  }
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return false;
  clearTimeout(offline);
  offline = undefined;
  setLive(true);
  for await (const { id, event, data } of eventsOf(response.body)) {
    if (signal.aborted || event === "end") return true;
    if (event !== "update") continue;
    screen.dataset.mark = id;
    update(JSON.parse(data));
  }
  return false;
}

async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) yield fieldsOf(event);
  }
}

const fieldsOf = (event) =>
  Object.fromEntries(event.split("\n").map((line) => /^([^:]*): ?(.*)$/.exec(line)?.slice(1) ?? [line, ""]));

function setLive(isLive, word = "Not connected") {
  document.querySelector(".dot")?.classList.toggle("off", !isLive);
  setText(document.getElementById("live-word"), isLive ? "Live" : word);
  document.body.classList.toggle("offline", !isLive);
  for (const button of document.querySelectorAll("form[method=post] button:not([hidden])")) judge(button);
  if (isLive) document.getElementById("gone")?.remove();
}

const OPEN = "deepagent-mcp open";

/** Tells that the server does not answer; the page goes on when it does. */
function lose() {
  setLive(false);
  tellMissing();
}

function tellMissing() {
  if (isLinked) tell("The server does not answer.", "If it has ended, open the page again:", OPEN);
  else tell("The server does not answer.", "Your text stays here.");
}

/** A form got no answer, and stays as it is. */
export function missAnswer() {
  tellMissing();
  follow();
}

/** The server refuses the session, or another program answers in its place. The screen stays, with what is typed. */
export function end() {
  isEnded = true;
  clearTimeout(offline);
  stream.abort();
  setLive(false, "Ended");
  if (isLinked)
    tell("This page has ended with its server.", "Your text stays here. Open the page again:", OPEN);
  else tell("You were logged out.", "Your text stays here until you reload the page to log in.");
  keep(undefined);
}

function tell(what, advice, command) {
  document.getElementById("gone")?.remove();
  const notice = document.createElement("p");
  notice.id = "gone";
  notice.setAttribute("role", "alert");
  const strong = document.createElement("strong");
  strong.textContent = what;
  notice.append(strong, ` ${advice} `);
  if (command !== undefined)
    notice.append(Object.assign(document.createElement("code"), { textContent: command }));
  document.body.prepend(notice);
}

document.addEventListener("visibilitychange", () => isFirst || follow());
addEventListener("pageshow", ({ persisted }) => persisted && follow());
addEventListener("pagehide", () => stream.abort());
void navigator.locks?.request("first page", () => {
  isFirst = true;
  if (document.hidden) follow();
  return new Promise(() => undefined);
});
