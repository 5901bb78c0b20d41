/** Keeps the screen up to date, and reports when that is no longer possible. */
import { judge } from "./forms.js";
import { shown, update, write } from "./screen.js";
import { setText } from "./set-text.js";
import { isLinked, isOurs, isShared, keep, request } from "./session.js";

/*
 * A browser has six connections to a server, for streams and everything else. So only pages that are seen keep a
 * stream, and of the others the one that was opened first, which reports requests at once. The rest poll.
 */
const LOOK_MS = 10_000;
/** Pauses before another try; the last one counts for all later tries. */
const AGAIN_MS = [1000, 1000, 2000, 4000, 8000];
/** A break shorter than the first time disables no button; one shorter than the second is not reported. */
const [BREAK_MS, NOTICE_MS] = [1500, 5000];
let isFirst = false;
let isEnded = false;
let stream = new AbortController();
let next;
/** When the stream broke off, the tries since then, the time of the next one, and timers until it is back. */
let broken;

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
  next = setTimeout(follow, isOver ? LOOK_MS : breakOff());
}

/** Notes that the stream is lost; returns the pause before the next try. */
function breakOff() {
  broken ??= {
    since: new Date(),
    tries: 0,
    timers: [
      setTimeout(setLive, BREAK_MS, false),
      setTimeout(tellMissing, NOTICE_MS),
      setInterval(count, 1000),
    ],
  };
  document.querySelector(".dot")?.classList.add("off");
  const pause = AGAIN_MS[Math.min(broken.tries, AGAIN_MS.length - 1)];
  broken.tries += 1;
  broken.next = Date.now() + pause;
  count();
  return pause;
}

function mend() {
  for (const timer of broken?.timers ?? []) clearTimeout(timer);
  broken = undefined;
}

/** Reads updates until the stream ends. True: the server ended it; false: it broke off. */
async function read(isLook, signal) {
  const address = new URL(shown.address ?? location.href, location.href);
  address.searchParams.set("mark", shown.mark);
  if (shown.isWhole) address.searchParams.set("whole", "");
  if (isLook) address.searchParams.set("once", "");
  const headers = { accept: "text/event-stream" };
  const response = await request(address.pathname + address.search, { headers, signal });
  if (!isOurs(response)) {
    end();
    return false;
  }
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return false;
  mend();
  setLive(true);
  for await (const { id, event, data } of eventsOf(response.body)) {
    if (signal.aborted || event === "end") return true;
    if (event === "text") write(JSON.parse(data));
    if (event === "snapshot" || event === "delta") update({ mark: id, ...JSON.parse(data) });
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
  explain(isLive);
  if (isLive) document.getElementById("gone")?.remove();
}

/** Explains beside the first button of each form why it is disabled. */
function explain(isLive) {
  for (const reason of document.querySelectorAll(".off-why")) reason.remove();
  for (const form of isLive ? [] : document.querySelectorAll("main form[method=post]")) {
    const reason = Object.assign(document.createElement("span"), { className: "off-why small dim" });
    reason.textContent = "The server does not answer";
    form.querySelector("button:not([type=button])")?.before(reason);
  }
}

const OPEN = "deepagent-mcp open";

/** Shows since when the server has not answered. The page continues when it does. */
function tellMissing() {
  const since = (broken?.since ?? new Date()).toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const advice = "What you see may be out of date. Your text stays here.";
  const again = Object.assign(document.createElement("button"), { type: "button", className: "btn small" });
  again.textContent = "Try now";
  again.addEventListener("click", follow);
  const seconds = Object.assign(document.createElement("span"), { id: "again" });
  // It counts, and readers would hear each number.
  seconds.setAttribute("aria-hidden", "true");
  const command = isLinked ? [" If the server has stopped, run", OPEN] : [""];
  tell(`Not connected since ${since}.`, advice + command[0], command[1], [seconds, again]);
  count();
}

/** Shows when the page tries again. */
function count() {
  const left = Math.ceil(((broken?.next ?? 0) - Date.now()) / 1000);
  setText(document.getElementById("again"), left > 0 ? `Trying again in ${left} s.` : "Trying …");
}

/** A form got no answer, and stays as it is. */
export function missAnswer() {
  tellMissing();
  follow();
}

/** Stops when the server refuses the session, or another program answers. The screen stays, with the typed text. */
export function end() {
  isEnded = true;
  mend();
  stream.abort();
  setLive(false, "Ended");
  if (isShared()) tell("This shared page has ended.", "Ask whoever sent the link for a new one.");
  else if (isLinked)
    tell("This page has ended with its server.", "Your text stays here. Open the page again:", OPEN);
  else tell("You were logged out.", "Your text stays here until you reload the page to log in.");
  keep(undefined);
}

function tell(what, advice, command, more = []) {
  document.getElementById("gone")?.remove();
  const notice = document.createElement("p");
  notice.id = "gone";
  notice.classList.toggle("amber", more.length > 0);
  notice.setAttribute("role", "alert");
  const strong = document.createElement("strong");
  strong.textContent = what;
  notice.append(strong, ` ${advice} `);
  if (command !== undefined)
    notice.append(Object.assign(document.createElement("code"), { textContent: command }), ". ");
  for (const part of more) notice.append(part, " ");
  document.body.prepend(notice);
}

document.addEventListener("visibilitychange", () => isFirst || follow());
addEventListener("online", follow);
addEventListener("pageshow", ({ persisted }) => persisted && follow());
addEventListener("pagehide", () => stream.abort());
void navigator.locks?.request("first page", () => {
  isFirst = true;
  if (document.hidden) follow();
  return new Promise(() => undefined);
});
