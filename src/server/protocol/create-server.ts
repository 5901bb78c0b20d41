import type { McpRequestContext, JSONRPCMessage } from "@modelcontextprotocol/server";
import { McpServer, ProtocolErrorCode, isJSONRPCErrorResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import { demandScope } from "../../runs/scopes.ts";
import { holderFor } from "../auth/auth.ts";
import { OpenRequests } from "../calls/open-requests.ts";
import { eventAnswers, registerEvents } from "../events/events.ts";
import { registerResources } from "../resources/index.ts";
import { APPS_EXTENSION, EVENTS_EXTENSION, TASKS_EXTENSION } from "../contracts/extensions.ts";
import { TaskPages, TaskQuestions, registerTasks } from "../tasks/tasks.ts";
import { toolsFor } from "../tools/tools.ts";
import type { ConnectionDeps, ServerDeps } from "../contracts/deps.ts";
import { registerPrompts } from "./prompts.ts";
import { type Revision, revisionOf } from "../contracts/revisions.ts";
import { createStateCodec } from "../calls/state.ts";
import { SentResults, registerTools } from "../calls/tool.ts";
import { memberOf, parsedJson } from "../../core/unknown.ts";
import texts from "./prompts.json" with { type: "json" };

/** Some clients look for the Events extension where its draft had it. */
const DRAFT_EVENTS = { events: { listChanged: false } };

/**
 * Makes server instances: one per stdio connection, per HTTP session and, in revisions without sessions, per
 * HTTP request. Cheap and without side effects: clients open connections only to probe.
 */
export function createServerFactory(deps: ServerDeps): (context: McpRequestContext) => McpServer {
  const codec = createStateCodec(deps);
  const questions = new TaskQuestions(deps);
  const pages = new TaskPages(deps.clock);
  const answers = eventAnswers(deps);
  return ({ era, authInfo }) => {
    const revision = revisionOf(era);
    const holder = holderFor(deps.principalOf(authInfo), authInfo);
    const own: ConnectionDeps = { ...deps, runs: async () => (await deps.runs()).as(holder) };
    const mcp = new McpServer(
      { name: "deepagent-mcp", title: "Deep agent", version: deps.version },
      {
        instructions: texts.instructions,
        capabilities: {
          // The list of tools never changes while the server runs; nobody watches the files of prompts.
          tools: { listChanged: false },
          prompts: { listChanged: false },
          resources: { subscribe: true, listChanged: true },
          ...DRAFT_EVENTS,
          extensions: {
            // SEP-2640.
            "io.modelcontextprotocol/skills": { directoryRead: true },
            [APPS_EXTENSION]: {},
            [EVENTS_EXTENSION]: { listChanged: false },
            ...(revision.tasks ? { [TASKS_EXTENSION]: {} } : {}),
          },
        },
        requestState: { verify: codec.verify },
        cacheHints: {
          // The list depends on the client.
          "tools/list": { ttlMs: 300_000, cacheScope: "private" },
          "prompts/list": { ttlMs: 60_000, cacheScope: "private" },
        },
      },
    );
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is not an event target
    mcp.server.onerror = (error) => deps.logger.debug("mcp.error", { error: error.message });
    const registration = {
      deps: own,
      codec,
      revision: () => revisionOf(era, mcp.server.getNegotiatedProtocolVersion()),
      sent: new SentResults(mcp),
      open: new OpenRequests(),
    };
    registerTools(mcp, toolsFor(deps.config), registration);
    registerEvents(mcp, { deps: own, answers });
    if (revision.tasks) registerTasks(mcp, { deps: own, revision, questions, pages });
    registerPrompts(mcp, own, holder);
    registerResources(mcp, {
      ...own,
      // Every resource needs this scope, also the run that any scope may look at.
      runs: async () => {
        demandScope(holder, ["read"]);
        return own.runs();
      },
      revision,
      principal: holder.principal,
    });
    rewriteErrors(mcp, revision);
    return mcp;
  };
}

function rewriteErrors(mcp: McpServer, { resourceNotFound }: Revision): void {
  const rewritten = (message: JSONRPCMessage): JSONRPCMessage => {
    if (!isJSONRPCErrorResponse(message)) return message;
    const { error } = message;
    // The SDK sends the code of the latest revision in all of them.
    if (error.message.startsWith("Resource not found") && memberOf(error.data, "uri") !== undefined)
      return { ...message, error: { ...error, code: resourceNotFound } };
    const problem = paramsProblem(error.message);
    if (problem === undefined) return message;
    const code = ProtocolErrorCode.InvalidParams;
    return { ...message, error: { code, message: `Invalid params: ${problem}` } };
  };
  const connect = mcp.server.connect.bind(mcp.server);
  mcp.server.connect = async (transport) => {
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => send(rewritten(message), options);
    await connect(transport);
  };
}

/**
 * Describes a problem in one of zod's lists. The SDK shows such lists unchanged, and takes most of them for failures
 * of the server. Returns undefined if the text is not a list about the params of a request.
 */
export function paramsProblem(text: string): string | undefined {
  const at = text.indexOf("[");
  if (!/^(?:Invalid .{0,100})?$/.test(text.slice(0, Math.max(0, at)))) return undefined;
  const Problem = z.object({ path: z.array(z.union([z.string(), z.number()])), message: z.string() });
  const problems = z.array(Problem).safeParse(parsedJson(text.slice(at))).data ?? [];
  const problem = problems.find(({ path: [first] }) => first === "params");
  if (problem === undefined) return undefined;
  const name = problem.path.slice(1).join(".") || "params";
  const words = problem.message.replace("Invalid input: ", "").replace("record", "object");
  return `${name}: ${words.replace(", received undefined", ", but it is missing")}`;
}
