/** Runs as resources: each with its views, and the list of runs. */
import { ResourceNotFoundError } from "@modelcontextprotocol/server";
import { defined } from "../../core/unknown.ts";
import { oneLine } from "../../core/text.ts";
import type { RunEvent } from "../../runs/events.ts";
import { type RunView, isFinal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { eventDocument, pointDocument, runDocument } from "../views/run-document.ts";
import { reportOf, transcriptOf } from "../views/transcript.ts";
import type { ListSection, ReadRequest, ResourceScope, ResourceSpec } from "./resource.ts";
import { RUN_TEMPLATE, type RUN_VIEWS, runUri } from "../contracts/uris.ts";

/** Newest events in `/events`. */
const SHOWN_EVENTS = 1000;

interface FoundRun {
  service: PrincipalRuns;
  runId: string;
  view: RunView;
}

interface View {
  name: string;
  path?: (typeof RUN_VIEWS)[number] | "events{?after}";
  title: string;
  description: string;
  mimeType: string;
  text: (run: FoundRun, request: ReadRequest) => string | Promise<string>;
}

const RUN: View = {
  name: "run",
  title: "Run",
  description:
    "State of a run: status, todos, subagents, approvals, questions, changed files, usage, answer.",
  mimeType: "application/json",
  text: ({ view }) => JSON.stringify(runDocument(view), null, 2),
};

const VIEWS: readonly View[] = [
  RUN,
  {
    name: "run-report",
    path: "report",
    title: "Run report",
    description: "The final answer of a run.",
    mimeType: "text/markdown",
    text: ({ view }) => reportOf(view),
  },
  {
    name: "run-transcript",
    path: "transcript",
    title: "Run transcript",
    description: `What happened in a run, for people to read; the newest ${SHOWN_EVENTS} events.`,
    mimeType: "text/markdown",
    text: async (run) => transcriptOf(run.view, await newestEvents(run)),
  },
  {
    name: "run-events",
    path: "events",
    title: "Run events",
    description: `Journal of a run, one JSON object a line, oldest first; the newest ${SHOWN_EVENTS}.`,
    mimeType: "application/x-ndjson",
    text: async (run) => jsonLines(await newestEvents(run)),
  },
  {
    name: "run-events-after",
    path: "events{?after}",
    title: "Run events after a number",
    description: `The same from any event on: those with a greater seq, at most ${SHOWN_EVENTS}.`,
    mimeType: "application/x-ndjson",
    text: async ({ service, runId }, { uri, variables }) => {
      const after = Number(variables["after"] || Number.NaN);
      if (!Number.isSafeInteger(after) || after < 0) throw new ResourceNotFoundError(uri);
      return jsonLines((await service.read.events(runId, { after, limit: SHOWN_EVENTS })) ?? []);
    },
  },
  {
    name: "run-todos",
    path: "todos",
    title: "Run todos",
    description: "Todo list of a run.",
    mimeType: "application/json",
    text: ({ view }) => JSON.stringify(view.run.todos, null, 2),
  },
  {
    name: "run-points",
    path: "points",
    title: "Run points",
    description:
      "Points of a run's thread, oldest first. run_deep_agent with one as thread_id begins a new thread there.",
    mimeType: "application/json",
    text: async ({ service, runId }) => {
      const points = (await service.read.points(runId)) ?? [];
      return JSON.stringify(points.map(pointDocument), null, 2);
    },
  },
];

export const RUN_RESOURCES: readonly ResourceSpec[] = VIEWS.map(({ path, text, ...view }) => ({
  ...view,
  uri: path === undefined ? RUN_TEMPLATE : `${RUN_TEMPLATE}/${path}`,
  complete: { run_id: completeRun },
  read: async (request, scope) => {
    const run = await findRun(scope, request);
    const ttlMs = isFinal(run.view.run.status) ? 86_400_000 : 0;
    return { text: await text(run, request), ttlMs };
  },
}));

const jsonLines = (events: readonly RunEvent[]): string =>
  events.map((event) => `${JSON.stringify(eventDocument(event))}\n`).join("");

async function newestEvents({ service, runId, view }: FoundRun): Promise<readonly RunEvent[]> {
  const after = Math.max(0, view.run.lastSeq - SHOWN_EVENTS);
  return (await service.read.events(runId, { after, limit: SHOWN_EVENTS })) ?? [];
}

/** Finds the run that a URI names. Somebody else's run is as unknown as one that never was. */
export async function findRun(scope: ResourceScope, { uri, variables }: ReadRequest): Promise<FoundRun> {
  const runId = variables["run_id"] ?? "";
  const service = await scope.runs();
  const view = await service.read.view(runId);
  if (view === undefined) throw new ResourceNotFoundError(uri);
  return { service, runId, view };
}

/** Lists runs, newest first. */
export const listRuns: ListSection = async ({ runs }, { limit, after }) => {
  const service = await runs();
  const found = await service.read.list({ limit, ...defined({ before: after }) });
  const { description, mimeType } = RUN;
  return found.map(({ id, task }) => ({
    id,
    resource: { uri: runUri(id), name: id, title: oneLine(task, 80), description, mimeType },
  }));
};

export async function completeRun({ runs }: ResourceScope, typed: string): Promise<string[]> {
  const recent = await (await runs()).read.list({ limit: 200 });
  return recent.map((run) => run.id).filter((id) => id.startsWith(typed));
}
