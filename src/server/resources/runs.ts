import {
  ResourceNotFoundError,
  ResourceTemplate,
  type McpServer,
  type ReadResourceResult,
  type Variables,
} from "@modelcontextprotocol/server";
import { oneLine } from "../../core/text.ts";
import { isFinal, type RunEvent, type RunView } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { completePath, readTarget } from "./contents.ts";
import { eventDocument, reportOf, runDocument } from "./run-document.ts";
import type { ResourceScope } from "./scope.ts";
import {
  decodeOnce,
  decodePath,
  RUN_FILES_TEMPLATE,
  RUN_TEMPLATE,
  runFileUri,
  runUri,
  type RunViewName,
} from "./uris.ts";

/** Runs named in `resources/list`. */
const LISTED_RUNS = 20;
/** Runs looked at for completion. */
const COMPLETED_RUNS = 200;
/** Newest events in `/events`. */
const SHOWN_EVENTS = 1000;
/** How long a client may keep what a run that has ended shows. */
const FINAL_TTL_MS = 86_400_000;

interface RunResource {
  name: string;
  /** Absent for the run itself. */
  view?: RunViewName;
  title: string;
  description: string;
  mimeType: string;
  text(view: RunView, events: () => Promise<RunEvent[]>): string | Promise<string>;
}

const RESOURCES: readonly RunResource[] = [
  {
    name: "run",
    title: "Run",
    description: "State of a run: status, todos, subagents, approvals, changed files, usage, answer.",
    mimeType: "application/json",
    text: (view) => JSON.stringify(runDocument(view), null, 2),
  },
  {
    name: "run-report",
    view: "report",
    title: "Run report",
    description: "The final answer of a run.",
    mimeType: "text/markdown",
    text: (view) => reportOf(view),
  },
  {
    name: "run-events",
    view: "events",
    title: "Run events",
    description: `Journal of a run, one JSON object a line, oldest first; the newest ${SHOWN_EVENTS}.`,
    mimeType: "application/x-ndjson",
    text: async (_view, events) =>
      (await events()).map((event) => `${JSON.stringify(eventDocument(event))}\n`).join(""),
  },
  {
    name: "run-todos",
    view: "todos",
    title: "Run todos",
    description: "Todo list of a run.",
    mimeType: "application/json",
    text: (view) => JSON.stringify(view.run.todos, null, 2),
  },
];

/** `deepagent://runs/{run_id}`, its views, and the files of its thread. */
export function registerRuns(mcp: McpServer, scope: ResourceScope): void {
  for (const resource of RESOURCES) registerView(mcp, scope, resource);
  registerRunFiles(mcp, scope);
}

function registerView(mcp: McpServer, scope: ResourceScope, resource: RunResource): void {
  const { name, view: viewName, title, description, mimeType } = resource;
  const uriTemplate = viewName === undefined ? RUN_TEMPLATE : `${RUN_TEMPLATE}/${viewName}`;
  const template = new ResourceTemplate(uriTemplate, {
    list: viewName === undefined ? () => listRuns(scope) : undefined,
    complete: { run_id: (typed) => completeRun(scope, typed) },
  });
  mcp.registerResource(name, template, { title, description, mimeType }, async ({ href }, variables) => {
    const { service, runId, view } = await findRun(scope, href, variables);
    const events = async () => {
      const after = Math.max(0, view.run.lastSeq - SHOWN_EVENTS);
      return (await service.events(scope.principal, runId, { after, limit: SHOWN_EVENTS })) ?? [];
    };
    const text = await resource.text(view, events);
    return {
      contents: [{ uri: href, mimeType, text }],
      ttlMs: isFinal(view.run.status) ? FINAL_TTL_MS : 0,
      cacheScope: "private",
    };
  });
}

function registerRunFiles(mcp: McpServer, scope: ResourceScope): void {
  const template = new ResourceTemplate(RUN_FILES_TEMPLATE, {
    list: undefined,
    complete: {
      run_id: (typed) => completeRun(scope, typed),
      path: async (typed, context) => {
        const runId = context?.arguments?.["run_id"];
        if (runId === undefined) return [];
        const backend = await (await scope.runs()).runFiles(scope.principal, runId);
        return backend === undefined ? [] : completePath(backend, typed);
      },
    },
  });
  const description = "Files as the agent of a run sees them: those of its thread and the shared folders.";
  mcp.registerResource(
    "run-files",
    template,
    { title: "Run files", description },
    async (uri, variables, ctx) => {
      const { href } = uri;
      const path = decodePath(String(variables["path"]));
      const { service, runId } = await findRun(scope, href, variables);
      const backend = await service.runFiles(scope.principal, runId);
      if (path === undefined || backend === undefined) throw new ResourceNotFoundError(href);
      const uriOf = (entry: string): string => runFileUri(runId, entry);
      const contents = await readTarget({ backend, path, uri: href, uriOf, signal: ctx.mcpReq.signal });
      return { contents: [contents], ttlMs: 0, cacheScope: "private" } satisfies ReadResourceResult;
    },
  );
}

interface FoundRun {
  service: RunService;
  runId: string;
  view: RunView;
}

/** The run a URI names; one that is not the principal's own is as unknown as one that never was. */
async function findRun(scope: ResourceScope, uri: string, variables: Variables): Promise<FoundRun> {
  const runId = decodeOnce(String(variables["run_id"]));
  const service = await scope.runs();
  const view = runId === undefined ? undefined : await service.view(scope.principal, runId);
  if (runId === undefined || view === undefined) throw new ResourceNotFoundError(uri);
  return { service, runId, view };
}

async function listRuns(scope: ResourceScope) {
  const recent = await (await scope.runs()).list(scope.principal, { limit: LISTED_RUNS });
  return {
    resources: recent.map((run) => ({ uri: runUri(run.id), name: run.id, title: oneLine(run.task, 80) })),
  };
}

async function completeRun(scope: ResourceScope, typed: string): Promise<string[]> {
  const recent = await (await scope.runs()).list(scope.principal, { limit: COMPLETED_RUNS });
  return recent.map((run) => run.id).filter((id) => id.startsWith(typed));
}
