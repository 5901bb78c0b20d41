import type { ServerResponse } from "node:http";
import { isFinal, type Run, type RunEvent, type RunView } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { whenStalled } from "../http/slow-readers.ts";
import { SECURITY_HEADERS } from "./page-headers.ts";
import type { PageSession } from "./page-sessions.ts";
import { renderApprovals } from "./render-approvals.ts";
import { renderRun, SHOWN_EVENTS } from "./render-run.ts";

/** Changes within this time become one update. */
const GATHER_MS = 150;
const KEEP_ALIVE_MS = 15_000;

/** The run and the newest part of its journal; `undefined`: no such run. */
export async function readRun(
  runs: RunService,
  { principal, run }: PageSession,
): Promise<{ view: RunView; events: RunEvent[] } | undefined> {
  const view = await runs.view(principal, run);
  if (view === undefined) return undefined;
  return { view, events: await newestEvents(runs, view) };
}

/** The part of the journal that is shown. */
export async function newestEvents(runs: RunService, { run }: RunView): Promise<RunEvent[]> {
  const after = Math.max(0, run.lastSeq - SHOWN_EVENTS);
  return (await runs.events(run.principal, run.id, { after, limit: SHOWN_EVENTS })) ?? [];
}

/** Sends server-sent events for as long as the browser listens, the run lasts and `signal` lets it. */
export async function sendUpdates(
  response: ServerResponse,
  runs: RunService,
  { session, openCommand }: { session: PageSession; openCommand: (run: Run) => string | undefined },
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
  // A browser that takes nothing of what waits for it makes room for others; it comes back by itself.
  whenStalled(response, () => response.destroy());
  try {
    for (let known = -1; !stop.signal.aborted;) {
      const now = await readRun(runs, session);
      if (now === undefined) return;
      known = now.view.run.lastSeq;
      const ended = isFinal(now.view.run.status);
      await send(response, {
        run: renderRun(now.view, now.events, session).text,
        approvals: renderApprovals(now.view, { session, openCommand: openCommand(now.view.run) }).text,
        ended,
      });
      if (ended) return;
      await nextChange(runs, session, known, stop.signal);
    }
  } finally {
    clearInterval(keepAlive);
    signal.removeEventListener("abort", end);
    response.end();
  }
}

/** Waits until the browser has taken the update in: one that reads slowly gets fewer, not a backlog. */
async function send(response: ServerResponse, update: object): Promise<void> {
  if (response.write(`event: update\ndata: ${JSON.stringify(update)}\n\n`)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.once("drain", done);
    response.once("close", done);
  });
}

async function nextChange(
  runs: RunService,
  { principal, run }: PageSession,
  after: number,
  signal: AbortSignal,
): Promise<void> {
  for await (const _event of runs.watch(principal, run, { after, signal })) break;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, GATHER_MS);
    signal.addEventListener("abort", done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    if (signal.aborted) done();
  });
}
