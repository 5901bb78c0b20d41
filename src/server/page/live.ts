/** Keeps open pages up to date: sends a screen again whenever something happened that it shows. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type Clock, pause } from "../../core/clock.ts";
import { whenStalled } from "../../core/concurrency.ts";
import { type Screen, faviconOf, renderScreen, titleOf } from "../views/room/shell.ts";
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
}

/** Renders the current screen. Its mark identifies a version of the page by time and digest. */
export function shownAt(picture: Picture, now: number): { screen: Screen; mark: string } {
  const screen = picture(now);
  return { screen, mark: screenMark(screen, now) };
}

const screenMark = (screen: Screen, now: number): string =>
  `${now}-${createHash("sha256").update(renderUpdate(screen)).digest("base64url")}`;

const renderUpdate = (screen: Screen, reply?: Reply): string => {
  const [icon, shown] = [faviconOf(screen), renderScreen(screen)];
  return JSON.stringify({
    title: titleOf(screen),
    icon: reply?.at(icon) ?? icon,
    waiting: screen.waiting,
    html: reply?.based(shown) ?? shown.text,
  });
};

/**
 * Sends server-sent events until the browser leaves, nothing can change any more or `signal` aborts. `mark`: of the
 * version that the page shows; empty if it shows none yet. `isOnce`: the stream ends after the current news.
 */
export async function sendLive(
  reply: Reply,
  { read, changed }: LiveScreen,
  {
    clock,
    mark: first,
    isOnce,
    signal,
  }: { clock: Clock; mark: string; isOnce: boolean; signal: AbortSignal },
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
    let mark = first;
    for (let mayChange = !isOnce; !stop.signal.aborted;) {
      const picture = await read();
      if (picture === undefined) return;
      const then = Math.trunc(Number(mark.split("-", 1)[0]));
      // The page shows all that has happened if the picture would have looked like it then.
      const isTime = mark !== "" && Math.abs(then) <= 8.64e15;
      if (!isTime || screenMark(picture(then), then) !== mark) {
        const shown = shownAt(picture, clock());
        mark = shown.mark;
        const event = `id: ${mark}\nevent: update\ndata: ${renderUpdate(shown.screen, reply)}`;
        await write(response, event, stop.signal);
      }
      if (!mayChange) return await write(response, "event: end\ndata: {}", stop.signal);
      mayChange = await changed(stop.signal);
      await pause(GATHER_MS, stop.signal).catch(() => undefined);
    }
  } finally {
    clearInterval(keepAlive);
    signal.removeEventListener("abort", end);
    response.end();
  }
}

/** Waits until the browser has read it, so that a slow one gets fewer updates and no backlog. */
async function write(response: ServerResponse, event: string, signal: AbortSignal): Promise<void> {
  if (!response.write(`${event}\n\n`)) await once(response, "drain", { signal }).catch(() => undefined);
}
