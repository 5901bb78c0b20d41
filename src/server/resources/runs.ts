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
import { RUN_TEMPLATE, runUri } from "../contracts/uris.ts";
import facts from "./resources.json" with { type: "json" };

/** Newest events in `/events`; `resources.json` repeats it. */
const SHOWN_EVENTS = 1000;

interface FoundRun {
  service: PrincipalRuns;
  runId: string;
  view: RunView;
}

/** The texts of a run, by the names that `resources.json` has facts about. */
const TEXTS: Readonly<
  Record<keyof typeof facts.runs, (run: FoundRun, request: ReadRequest) => string | Promise<string>>
> = {
  run: ({ view }) => JSON.stringify(runDocument(view), null, 2),
  "run-report": ({ view }) => reportOf(view),
  "run-transcript": async (run) => transcriptOf(run.view, await newestEvents(run)),
  "run-events": async (run) => jsonLines(await newestEvents(run)),
  "run-events-after": async ({ service, runId }, { uri, variables }) => {
    const after = Number(variables["after"] || Number.NaN);
    if (!Number.isSafeInteger(after) || after < 0) throw new ResourceNotFoundError(uri);
    return jsonLines((await service.read.events(runId, { after, limit: SHOWN_EVENTS })) ?? []);
  },
  "run-todos": ({ view }) => JSON.stringify(view.run.todos, null, 2),
  "run-points": async ({ service, runId }) =>
    JSON.stringify(((await service.read.points(runId)) ?? []).map(pointDocument), null, 2),
};

/** A run, and its views below its own URI. */
export const RUN_RESOURCES: readonly ResourceSpec[] = Object.entries<
  Pick<ResourceSpec, "title" | "description" | "mimeType"> & { path?: string }
>(facts.runs).map(([name, { path, ...view }]) => ({
  ...view,
  name,
  uri: path === undefined ? RUN_TEMPLATE : `${RUN_TEMPLATE}/${path}`,
  complete: { run_id: completeRun },
  read: async (request, scope) => {
    const run = await findRun(scope, request);
    const ttlMs = isFinal(run.view.run.status) ? 86_400_000 : 0;
    const text = TEXTS[name as keyof typeof facts.runs]; // a name of the table
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
  const { description, mimeType } = facts.runs.run;
  return found.map(({ id, task }) => ({
    id,
    resource: { uri: runUri(id), name: id, title: oneLine(task, 80), description, mimeType },
  }));
};

export async function completeRun({ runs }: ResourceScope, typed: string): Promise<string[]> {
  const recent = await (await runs()).read.list({ limit: 200 });
  return recent.map((run) => run.id).filter((id) => id.startsWith(typed));
}
