/** Keeps open pages up to date: sends a screen again whenever it looks different. */
import type { ServerResponse } from "node:http";
import { pause } from "../../core/clock.ts";
import { whenStalled } from "../http/slow-readers.ts";
import { ICONS, type Screen, renderScreen, titleOf } from "../views/room/shell.ts";
import { SECURITY_HEADERS } from "./responses.ts";

/** Changes within this time become one update. */
const GATHER_MS = 250;
const KEEP_ALIVE_MS = 15_000;

export interface LiveScreen {
  /** The screen as it is now; `undefined`: there is none any more. */
  read: () => Promise<Screen | undefined>;
  /** Resolves when it may look different; false: it never will. */
  changed: (signal: AbortSignal) => Promise<boolean>;
}

/** Sends server-sent events until the browser leaves, nothing can change any more or `signal` aborts. */
export async function sendLive(
  response: ServerResponse,
  { read, changed }: LiveScreen,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  signal.addEventListener("abort", end, { once: true });
  response.once("close", end);
  response.writeHead(200, { ...SECURITY_HEADERS, "content-type": "text/event-stream" });
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) response.write(": alive\n\n");
  }, KEEP_ALIVE_MS);
  // Cuts off a browser that reads nothing, to make room for others; it reconnects by itself.
  whenStalled(response, () => response.destroy());
  try {
    let sent = "";
    for (let mayChange = true; !stop.signal.aborted;) {
      const screen = await read();
      if (screen === undefined) return;
      const update = JSON.stringify({
        title: titleOf(screen),
        icon: screen.waiting > 0 ? ICONS.asking : ICONS.calm,
        waiting: screen.waiting,
        html: renderScreen(screen).text,
      });
      if (update !== sent) await write(response, "update", update);
      sent = update;
      if (!mayChange) return await write(response, "end", "{}");
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
async function write(response: ServerResponse, event: string, data: string): Promise<void> {
  if (response.write(`event: ${event}\ndata: ${data}\n\n`)) return;
  await new Promise<void>((resolve) => {
    const release = (): void => {
      response.off("drain", release);
      response.off("close", release);
      resolve();
    };
    response.once("drain", release);
    response.once("close", release);
  });
}
