/** Reads runs for the page and the app, and sends updates while a browser is open. */
import type { ServerResponse } from "node:http";
import { oneLine } from "../../core/text.ts";
import type { RunEvent } from "../../runs/events.ts";
import { type Run, type RunView, isFinal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { whenStalled } from "../http/slow-readers.ts";
import { agentLabel } from "../views/approval-form.ts";
import { html } from "../views/html.ts";
import { SHOWN_EVENTS, renderApprovals, renderRun } from "../views/render-run.ts";
import { SECURITY_HEADERS } from "./responses.ts";
import type { PageSession } from "./sessions.ts";

/** Changes within this time become one update. */
const GATHER_MS = 150;
const KEEP_ALIVE_MS = 15_000;

/** The run and the newest part of its journal; `undefined`: no such run. */
export async function readRun(
  runs: PrincipalRuns,
  { principal, run }: PageSession,
): Promise<{ view: RunView; events: RunEvent[] } | undefined> {
  const view = await runs.view(principal, run);
  if (view === undefined) return undefined;
  return { view, events: await newestEvents(runs, view) };
}

/** The part of the journal that is shown. */
export async function newestEvents(runs: PrincipalRuns, { run }: RunView): Promise<RunEvent[]> {
  const after = Math.max(0, run.lastSeq - SHOWN_EVENTS);
  return (await runs.events(run.principal, run.id, { after, limit: SHOWN_EVENTS })) ?? [];
}

/** Sends server-sent events until the browser leaves, the run ends or `signal` aborts. */
export async function sendUpdates(
  response: ServerResponse,
  runs: PrincipalRuns,
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
  // Cuts off a browser that reads nothing, to make room for others; it reconnects by itself.
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

/** Waits until the browser has read the update, so that a slow one gets fewer updates and no backlog. */
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
  runs: PrincipalRuns,
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

/** One change of a file by a call of the run. */
export interface FileChange {
  time: number;
  /** Agent that changed it. */
  agent: string;
  /** `undefined` when the call did not report it, as tools of other servers do not. */
  diff: string | undefined;
}

const EVENTS_PER_PAGE = 500;
const MAX_CHANGES = 100;

/** The newest changes of `path` in this run, oldest first; `undefined`: no such run. */
export async function readChanges(
  runs: PrincipalRuns,
  { principal, run }: PageSession,
  path: string,
): Promise<FileChange[] | undefined> {
  const changes: FileChange[] = [];
  for (let after = 0; ;) {
    const events = await runs.events(principal, run, { after, limit: EVENTS_PER_PAGE });
    if (events === undefined) return undefined;
    for (const { kind, time, agent, data } of events) {
      if (kind !== "file_changed" || data.path !== path) continue;
      changes.push({ time, agent: agentLabel(agent), diff: data.diff });
    }
    changes.splice(0, changes.length - MAX_CHANGES);
    const last = events.at(-1);
    if (last === undefined || events.length < EVENTS_PER_PAGE) return changes;
    after = last.seq;
  }
}

/** Renders a run for the app: as the page does, without buttons. */
export async function renderAppView(
  view: RunView,
  runs: PrincipalRuns,
  openCommand: string | undefined,
): Promise<string> {
  const { run } = view;
  const events = await newestEvents(runs, view);
  return html`<header>
      <p class="brand">Deep agent run <code>${run.id}</code></p>
      <h1>${oneLine(run.task, 200)}</h1>
    </header>
    ${renderApprovals(view, { session: "app", openCommand })} ${renderRun(view, events, "app")}`.text;
}
