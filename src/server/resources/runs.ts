/** Runs as resources: their views, their files, and the graph of the agent. */
import { type McpServer, type Resource, ResourceNotFoundError } from "@modelcontextprotocol/server";
import { oneLine } from "../../core/text.ts";
import { type RunEvent, type RunHead, type RunView, isFinal } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { eventDocument, pointDocument, reportOf, runDocument, transcriptOf } from "../views/run-document.ts";
import { type ResourceScope, guarded } from "./scope.ts";
import { type ReadRequest, completePath, readTarget, registerTemplate } from "./template.ts";
import { RUN_FILES_TEMPLATE, RUN_TEMPLATE, type RunViewName, runFileUri, runUri } from "./uris.ts";

/** Runs looked at for completion. */
const COMPLETED_RUNS = 200;
/** Newest events in `/events`. */
const SHOWN_EVENTS = 1000;
/** How long a client may keep what a run that has ended shows. */
const FINAL_TTL_MS = 86_400_000;

interface FoundRun {
  service: RunService;
  runId: string;
  view: RunView;
}

/** One way to look at a run. */
interface RunResource {
  name: string;
  /** Absent for the run itself. */
  path?: RunViewName | "events{?after}";
  title: string;
  description: string;
  mimeType: string;
  text: (run: FoundRun, scope: ResourceScope, request: ReadRequest) => string | Promise<string>;
}

const RUN: RunResource = {
  name: "run",
  title: "Run",
  description: "State of a run: status, todos, subagents, approvals, changed files, usage, answer.",
  mimeType: "application/json",
  text: ({ view }) => JSON.stringify(runDocument(view), null, 2),
};

const RESOURCES: readonly RunResource[] = [
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
    text: async (run, scope) => transcriptOf(run.view, await newestEvents(run, scope)),
  },
  {
    name: "run-events",
    path: "events",
    title: "Run events",
    description: `Journal of a run, one JSON object a line, oldest first; the newest ${SHOWN_EVENTS}.`,
    mimeType: "application/x-ndjson",
    text: async (run, scope) => linesOf(await newestEvents(run, scope)),
  },
  {
    name: "run-events-after",
    path: "events{?after}",
    title: "Run events after a number",
    description: `The same from any event on: those with a greater seq, at most ${SHOWN_EVENTS}.`,
    mimeType: "application/x-ndjson",
    text: async ({ service, runId }, { principal }, { uri, variables }) => {
      const after = Number(variables["after"] || Number.NaN);
      if (!Number.isSafeInteger(after) || after < 0) throw new ResourceNotFoundError(uri);
      return linesOf((await service.events(principal, runId, { after, limit: SHOWN_EVENTS })) ?? []);
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
    text: async ({ service, runId }, { principal }) => {
      const points = (await service.points(principal, runId)) ?? [];
      return JSON.stringify(points.map(pointDocument), null, 2);
    },
  },
];

/** `deepagent://runs/{run_id}`, its views, and the files of its thread. */
export function registerRuns(mcp: McpServer, scope: ResourceScope): void {
  for (const { path, text, ...resource } of RESOURCES) {
    registerTemplate(mcp, scope, {
      ...resource,
      uriTemplate: path === undefined ? RUN_TEMPLATE : `${RUN_TEMPLATE}/${path}`,
      complete: { run_id: (typed) => completeRun(scope, typed) },
      read: async (request) => {
        const run = await findRun(scope, request);
        const contents = {
          uri: request.uri,
          mimeType: resource.mimeType,
          text: await text(run, scope, request),
        };
        return { contents, ttlMs: isFinal(run.view.run.status) ? FINAL_TTL_MS : 0 };
      },
    });
  }
  registerRunFiles(mcp, scope);
  scope.listing.addSection(async ({ limit, after }) =>
    listRuns(scope, { limit, ...(after === undefined ? {} : { before: after }) }),
  );
}

const linesOf = (events: readonly RunEvent[]): string =>
  events.map((event) => `${JSON.stringify(eventDocument(event))}\n`).join("");

async function newestEvents(
  { service, runId, view }: FoundRun,
  { principal }: ResourceScope,
): Promise<readonly RunEvent[]> {
  const after = Math.max(0, view.run.lastSeq - SHOWN_EVENTS);
  return (await service.events(principal, runId, { after, limit: SHOWN_EVENTS })) ?? [];
}

function registerRunFiles(mcp: McpServer, scope: ResourceScope): void {
  const filesOf = async (runId: string) => (await scope.runs()).runFiles(scope.principal, runId);
  registerTemplate(mcp, scope, {
    name: "run-files",
    uriTemplate: RUN_FILES_TEMPLATE,
    title: "Run files",
    description: "Files as the agent of a run sees them: those of its thread and the shared folders.",
    complete: {
      run_id: (typed) => completeRun(scope, typed),
      path: async (typed, { run_id: runId = "" }) => {
        const backend = await filesOf(runId);
        return backend === undefined ? [] : completePath(backend, typed);
      },
    },
    read: async (request) => {
      const { uri, variables, signal } = request;
      const { runId } = await findRun(scope, request);
      const backend = await filesOf(runId);
      if (backend === undefined) throw new ResourceNotFoundError(uri);
      const path = `/${variables["path"] ?? ""}`;
      const uriOf = (entry: string): string => runFileUri(runId, entry);
      return { contents: await readTarget({ backend, path, uri, uriOf, signal }), ttlMs: 0 };
    },
  });
}

/** The run a URI names; one that is not the principal's own is as unknown as one that never was. */
async function findRun(scope: ResourceScope, { uri, variables }: ReadRequest): Promise<FoundRun> {
  const runId = variables["run_id"] ?? "";
  const service = await scope.runs();
  const view = await service.view(scope.principal, runId);
  if (view === undefined) throw new ResourceNotFoundError(uri);
  return { service, runId, view };
}

async function listRuns(scope: ResourceScope, options: { limit: number; before?: string }) {
  const recent = await (await scope.runs()).list(scope.principal, options);
  return recent.map((run) => ({ id: run.id, resource: listed(run) }));
}

function listed({ id, task }: RunHead): Resource {
  const { description, mimeType } = RUN;
  return { uri: runUri(id), name: id, title: oneLine(task, 80), description, mimeType };
}

async function completeRun(scope: ResourceScope, typed: string): Promise<string[]> {
  const recent = await (await scope.runs()).list(scope.principal, { limit: COMPLETED_RUNS });
  return recent.map((run) => run.id).filter((id) => id.startsWith(typed));
}

const GRAPH: Resource = {
  uri: "deepagent://graph",
  name: "graph",
  title: "Agent graph",
  description: "How the agent works, as a drawing: its steps and what leads to which.",
  mimeType: "text/vnd.mermaid",
};

/** `deepagent://graph`: the agent's graph in the language of Mermaid. */
export function registerGraph(mcp: McpServer, scope: ResourceScope): void {
  const { uri, name, mimeType = "", ...metadata } = GRAPH;
  scope.listing.add(async () => [GRAPH]);
  mcp.registerResource(name, uri, { ...metadata, mimeType }, () =>
    guarded(`resources/read of ${uri}`, scope, async () => ({
      contents: [{ uri, mimeType, text: await (await scope.runs()).drawing(scope.principal) }],
      ttlMs: 0,
      cacheScope: "private",
    })),
  );
}
