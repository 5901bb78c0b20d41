/** Keeps open pages up to date: sends a screen again whenever something happened that it shows. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { isDeepStrictEqual } from "node:util";
import type { ServerResponse } from "node:http";
import { type Clock, pause } from "../../core/clock.ts";
import { whenStalled } from "../../core/concurrency.ts";
import type { RunEvent } from "../../runs/events.ts";
import type { LiveText } from "../../runs/live-texts.ts";
import { type ScreenContent, renderContent } from "../views/room/shell.ts";
import { deltaOf } from "../views/tree.ts";
import { type Reply, SECURITY_HEADERS } from "./responses.ts";
import type { Picture } from "./screen-context.ts";

/** Changes within this time become one update. */
const GATHER_MS = 250;
export interface LiveScreen {
  /** Reads the screen; `undefined` when the session or the run has gone. */
  read: () => Promise<Picture | undefined>;
  /** Address of the screen that was read, if its own may lead to another one later. */
  address?: () => string;
  /** Resolves when it may look different; false: it never will. */
  changed: (signal: AbortSignal) => Promise<boolean>;
  /** Follows the texts of the agent on the screen that was read, and its events. */
  texts?: (signal: AbortSignal) => AsyncIterable<RunEvent | LiveText>;
}

/** Parameters of the script that keeps a screen up to date. */
export interface Follow {
  /** Identifies a version of the screen by time and digest. */
  mark: string;
  /** Address to follow it at. Default: its own. */
  address?: string | undefined;
  /** The page shows something else than that version, so that it needs whole screens. */
  isWhole?: boolean;
}

/** The mark of a screen that looks like this now. */
export const markOf = (shown: ScreenContent, now: number): string =>
  `${now}-${createHash("sha256").update(JSON.stringify(shown)).digest("base64url")}`;

/**
 * Sends server-sent events until the browser leaves, nothing can change any more or `signal` aborts: a `snapshot` of
 * the screen, then each `delta`, and each `text` that the agent writes. `mark`: of the version that the page shows; empty
 * if it shows none yet. `isOnce`: the stream ends after the current news.
 */
export async function sendLive(
  reply: Reply,
  { read, changed, texts }: LiveScreen,
  {
    clock,
    mark: first,
    isWhole,
    isOnce,
    signal,
  }: { clock: Clock; mark: string; isWhole: boolean; isOnce: boolean; signal: AbortSignal },
): Promise<void> {
  const { response } = reply;
  const stop = new AbortController();
  const end = (): void => stop.abort();
  signal.addEventListener("abort", end, { once: true });
  response.once("close", end);
  response.writeHead(200, { ...SECURITY_HEADERS, "content-type": "text/event-stream" });
  // A page without news learns that it is followed.
  response.flushHeaders();
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) response.write(": alive\n\n");
  }, 15_000);
  // Cuts off a browser that reads nothing, to make room for others; it reconnects by itself.
  whenStalled(response, () => response.destroy());
  try {
    let version: Version = { mark: first };
    let writing: Promise<void> | undefined;
    for (let mayChange = !isOnce; !stop.signal.aborted;) {
      const picture = await read();
      if (picture === undefined) return;
      if (!isOnce)
        writing ??= texts && sendTexts(response, texts(stop.signal), stop.signal).catch(() => undefined);
      const before = lookBack(picture, version);
      if (before === undefined) {
        const now = clock();
        const content = renderContent(picture(now));
        const event = eventOf(reply, content, isWhole ? undefined : version.content);
        version = { mark: markOf(content, now), content };
        await write(response, `id: ${version.mark}\n${event}`, stop.signal);
      } else version.content = before;
      if (!mayChange) return await write(response, "event: end\ndata: {}", stop.signal);
      mayChange = await changed(stop.signal);
      await pause(GATHER_MS, stop.signal).catch(() => undefined);
    }
  } finally {
    stop.abort();
    clearInterval(keepAlive);
    signal.removeEventListener("abort", end);
    response.end();
  }
}

/** A version of a screen. Its content is known once it was rendered here. */
interface Version {
  mark: string;
  content?: ScreenContent;
}

/** Renders a screen as it would have looked at the time of a version; `undefined`: it would have looked different. */
function lookBack(picture: Picture, { mark, content }: Version): ScreenContent | undefined {
  const then = Math.trunc(Number(mark.split("-", 1)[0]));
  if (mark === "" || !(Math.abs(then) <= 8.64e15)) return undefined;
  const before = renderContent(picture(then));
  if (content === undefined) return markOf(before, then) === mark ? before : undefined;
  const isSame =
    isDeepStrictEqual({ ...content, tree: [] }, { ...before, tree: [] }) &&
    deltaOf(content.tree, before.tree) === undefined;
  return isSame ? content : undefined;
}

/** `old`: the content that the page shows; absent: it needs the whole screen. */
function eventOf(reply: Reply, { tree, icon, ...about }: ScreenContent, old: ScreenContent | undefined) {
  const news = old === undefined ? { tree } : { delta: deltaOf(old.tree, tree) };
  const data = reply.jsonOf({ ...about, icon: reply.at(icon), ...news });
  return `event: ${old === undefined ? "snapshot" : "delta"}\ndata: ${data}`;
}

/** Sends the additions to a text; an empty text when the journal has it. */
async function sendTexts(
  response: ServerResponse,
  items: AsyncIterable<RunEvent | LiveText>,
  signal: AbortSignal,
): Promise<void> {
  let last = { id: "", text: "" };
  for await (const item of items) {
    const isText = item.kind === "live_text";
    if (!isText && (last.id === "" || item.agent.length > 0)) continue;
    const { id, text } = isText ? item : { id: "", text: "" };
    const from = id === last.id && text.startsWith(last.text) ? last.text.length : 0;
    last = { id, text };
    await write(response, `event: text\ndata: ${JSON.stringify({ from, text: text.slice(from) })}`, signal);
  }
}

/** Waits until the browser has read it, so that a slow one gets fewer updates and no backlog. */
async function write(response: ServerResponse, event: string, signal: AbortSignal): Promise<void> {
  if (!response.write(`${event}\n\n`)) await once(response, "drain", { signal }).catch(() => undefined);
}
