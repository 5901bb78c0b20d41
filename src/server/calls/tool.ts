/** Defines the server's tools, and lists and calls them. */
import type {
  McpServer,
  RequestId,
  ServerContext,
  StandardSchemaWithJSON,
  Tool,
} from "@modelcontextprotocol/server";
import { isJSONRPCResponse, isJSONRPCResultResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import { byIdentity } from "../../core/by-identity.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { defined } from "../../core/unknown.ts";
import { wellFormed } from "../../core/text.ts";
import { MAX_TASK, type Scope, isFinal, waitingIn } from "../../runs/run.ts";
import { allows } from "../../runs/scopes.ts";
import type { OpenRequests } from "./open-requests.ts";
import type { AnswerWays, RunReport } from "../views/run-report.ts";
import { type ToolCall, callDigest } from "./call.ts";
import { type ClientFacts, clientFacts } from "./client.ts";
import { type ConnectionDeps, type ServerDeps, originOf } from "../contracts/deps.ts";
import { failureText } from "../contracts/failures.ts";
import { type Outcome, refused, withNotes } from "./outcome.ts";
import { toResult } from "./results.ts";
import type { Revision } from "../contracts/revisions.ts";
import annotations from "./annotations.json" with { type: "json" };

export interface ServerTool<Input extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** Its annotations follow from this: an agent may change files, and reach the network through tools. */
  readonly kind: keyof typeof annotations;
  /** Scopes that the token of a call needs; otherwise the call gets a challenge instead of a result. */
  readonly scopes: readonly Scope[];
  readonly description: string;
  readonly input: Input;
  readonly output: z.ZodObject;
  /** URI of the MCP App that shows its results. */
  readonly app?: string;
  /** True if clients that load tools on demand should always load this one. */
  readonly alwaysLoaded?: true;
  /** More fields of its results, made from the report of a run. */
  readonly extend?: (report: RunReport) => Record<string, unknown>;
  /** Expected failures are `refused` outcomes; whatever is thrown is logged and hidden behind a reference. */
  handle(args: z.output<Input>, call: ToolCall): Promise<Outcome>;
}

/** Identity that infers the argument type from the schema. */
export const defineTool = <Input extends z.ZodObject>(tool: ServerTool<Input>): ServerTool<Input> => tool;

/** Adds tools to one server instance. `revision`: that which the connection speaks now. */
export function registerTools(
  mcp: McpServer,
  tools: readonly ServerTool[],
  connection: Pick<ToolCall, "deps" | "codec" | "open"> & { revision: () => Revision; sent: SentResults },
): void {
  const { deps, codec, revision, sent, open } = connection;
  // Results are checked here: the SDK requires structured content of a tool that it knows to have an output schema.
  for (const tool of tools)
    mcp.registerTool(tool.name, { inputSchema: inputSchema(tool) }, async (args, context) => {
      const begunAt = deps.clock();
      const whenSent = sent.of(context);
      const client = clientFacts(mcp, context, { revision: revision(), deps });
      const handled = async (): Promise<Outcome> => {
        const principal = deps.principalOf(context.http?.authInfo);
        const [known, unknown] = splitArguments(tool, args);
        const digest = callDigest(tool.name, known);
        // Parsing long arguments has taken a turn of the event loop.
        await ownTurn();
        const runs = await deps.runs();
        const call = { deps, codec, context, client, principal, digest, begunAt, open, runs };
        return withNotes(await tool.handle(known, call), unknown);
      };
      const outcome = await handled().catch((error: unknown) =>
        refused(failureText(error, { kind: "tool", name: tool.name }, deps)),
      );
      if (outcome.kind === "run" || outcome.kind === "task")
        whenSent(() => {
          const { id } = outcome.view.run;
          // If it cannot be stored that the call was answered, an equal task later joins this run and reports so.
          deps
            .runs()
            .then((service) => service.control.answered(id, begunAt))
            .catch((error: unknown) => deps.logger.warn("call.not_marked_answered", { runId: id, error }));
        });
      const result = toResult(outcome, {
        ...(await answerWays(outcome, client, { context, deps, open })),
        picture: client.apps ? await renderPicture(outcome, context, deps) : undefined,
        ttlMs: deps.keptAtLeastMs ?? null,
        form: client.form,
        extend: tool.extend,
      });
      if ("structuredContent" in result) tool.output.parse(result.structuredContent);
      return result;
    });
  mcp.server.setRequestHandler("tools/list", (_request, context) => {
    const { form } = clientFacts(mcp, context, { revision: revision(), deps });
    return { tools: tools.map((tool) => toolListing(tool)[form.structure ? "whole" : "withoutOutput"]) };
  });
}

/** Finds the ways to answer a run's requests, and its page until it has ended. */
export async function answerWays(
  outcome: Outcome,
  { forms, page: opensPage }: ClientFacts,
  { context, deps, open }: { context: ServerContext; deps: ServerDeps<unknown>; open?: OpenRequests },
): Promise<AnswerWays> {
  const { openCommand, config } = deps;
  const run = outcome.kind === "run" || outcome.kind === "task" ? outcome.view.run : undefined;
  const pending = outcome.kind === "run" ? waitingIn(outcome.view) : [];
  const isUnread = open !== undefined && pending.some((waiting) => open.isUnread(waiting));
  const isOpen = run !== undefined && !isFinal(run.status) && ((!forms && !opensPage) || isUnread);
  // The page shows the journal too.
  const page =
    isOpen && allows(context.http?.authInfo, "read")
      ? await deps.page?.watch(run.principal, run.id, originOf(context))
      : undefined;
  const decidesOnPage = deps.page?.asksForLogIn === true && allows(context.http?.authInfo, "approve");
  const model = config.approvals.allowModelAnswers;
  return { forms, opensPage, isUnread, openCommand, page, decidesOnPage, model };
}

/** Renders the run for an MCP App, with its journal. */
async function renderPicture(
  outcome: Outcome,
  { http }: ServerContext,
  { runs, openCommand, clock }: ConnectionDeps,
): Promise<string | undefined> {
  if (outcome.kind !== "run" || !allows(http?.authInfo, "read")) return undefined;
  const { renderAppView } = await import("../page/updates.ts");
  return renderAppView(outcome.view, await runs(), openCommand(outcome.view.run), clock());
}

/** A tool as clients list it, made once per process. */
const toolListing = byIdentity((tool: ServerTool) => {
  const { name, title, description, app, alwaysLoaded } = tool;
  const ui = app === undefined ? undefined : { resourceUri: app };
  const withoutOutput = {
    name,
    title,
    description,
    inputSchema: jsonSchema(tool.input),
    annotations: annotations[tool.kind],
    ...(ui || alwaysLoaded ? { _meta: defined({ ui, "anthropic/alwaysLoad": alwaysLoaded }) } : {}),
  };
  // The list names fields, their types, and what required ones always have; results are checked against the whole.
  const { properties = {}, required = [] } = jsonSchema(tool.output);
  const outlined = Object.entries(properties as Record<string, Json>).map(
    ([field, schema]) => [field, typeOnly(schema, required.includes(field))] as const,
  );
  const outputSchema = { type: "object" as const, properties: Object.fromEntries(outlined) };
  return { withoutOutput, whole: { ...withoutOutput, outputSchema } };
});

/** Takes arguments that a tool does not have: some clients add their own. Its messages explain wrong ones. */
const inputSchema = byIdentity(
  (tool: ServerTool): StandardSchemaWithJSON<unknown, Record<string, unknown>> => {
    const input = tool.input.loose();
    return {
      "~standard": {
        version: 1,
        vendor: "deepagent-mcp",
        validate: (value) => {
          const parsed = input.safeParse(value);
          if (parsed.success) return { value: parsed.data };
          const issues = parsed.error.issues.map((issue) => ({
            message: `${issue.path.map(String).join(".") || "arguments"}: ${issue.message}`,
          }));
          const given = typeof value === "object" && value !== null ? value : {};
          return { issues: [...issues, ...splitArguments(tool, given)[1].map((message) => ({ message }))] };
        },
        jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
      },
    };
  },
);

/** Returns the arguments that a tool has, and a note that names the others. */
function splitArguments({ input }: ServerTool, args: object): [Record<string, unknown>, string[]] {
  const { shape } = input;
  const known = Object.fromEntries(Object.entries(args).filter(([name]) => Object.hasOwn(shape, name)));
  const others = Object.keys(args).filter((name) => !Object.hasOwn(shape, name));
  if (others.length === 0) return [known, []];
  const names = others.slice(0, 10).map((name) => JSON.stringify(name.slice(0, 80)));
  const more = others.length > names.length ? ` and ${others.length - names.length} more` : "";
  const note = `Ignored the unknown argument ${names.join(", ")}${more}; the arguments are ${Object.keys(shape).join(", ")}.`;
  return [known, [note]];
}

type Json = Record<string, unknown>;

/** Returns a JSON Schema without the members that cost bytes and do not help a model; they are still checked. */
function jsonSchema(schema: z.ZodObject) {
  const {
    $schema: _dialect,
    type: _type,
    ...json
  } = z.toJSONSchema(schema, {
    io: "input",
    override: ({ jsonSchema: node }) => {
      delete node.minLength;
      delete node.maxLength;
      delete node.propertyNames;
      if (node.minimum === Number.MIN_SAFE_INTEGER || node.minimum === 0) delete node.minimum;
      if (node.maximum === Number.MAX_SAFE_INTEGER || node.maximum === 86_400) delete node.maximum;
    },
  });
  return { ...json, type: "object" } as Tool["inputSchema"]; // JSON Schema as zod writes it
}

const typeOnly = ({ type, enum: values, items, required }: Json, withNames: boolean): Json => ({
  ...defined({ type, enum: values, required: withNames ? required : undefined }),
  ...(items === undefined ? {} : { items: typeOnly(items as Json, withNames) }), // arrays here have one item schema
});

/** Arguments that several tools have. */
export const taskText = z
  .string()
  .max(MAX_TASK, { error: `at most ${MAX_TASK} characters; put long texts into a file and name it` })
  .refine((task) => task.trim() !== "", { error: "describe the task in words" })
  // Every later step writes the task as JSON, where each half of a surrogate pair costs a hundred times a character.
  .overwrite(wellFormed);

export const runId = z.string().min(1).max(200).describe("From run_deep_agent");

export const waitSeconds = z.number().min(0).max(86_400).optional().describe("Up to the server's limit");

/**
 * Reports when the result of a request was written to its client, which does not happen when the client cancelled
 * or was gone. Whether a client has read it is unknown.
 */
export class SentResults {
  readonly #waiting = new Map<RequestId, () => void>();

  constructor(mcp: McpServer) {
    const connect = mcp.server.connect.bind(mcp.server);
    mcp.server.connect = async (transport) => {
      const send = transport.send.bind(transport);
      transport.send = async (message, options) => {
        if (!isJSONRPCResponse(message) || message.id === undefined) return send(message, options);
        const sent = this.#waiting.get(message.id);
        this.#waiting.delete(message.id);
        await send(message, options);
        if (isJSONRPCResultResponse(message)) sent?.();
      };
      await connect(transport);
    };
  }

  /** Returns a function that registers work for after the result was sent. Call it when a request begins. */
  of({ mcpReq, http }: ServerContext): (sent: () => void) => void {
    // The signal of the HTTP request reports broken streams of the 2025 era, which do not end the call.
    const stream = http?.req?.signal;
    return (sent) => {
      if (mcpReq.signal.aborted) return;
      this.#waiting.set(mcpReq.id, () => {
        if (stream?.aborted !== true) sent();
      });
    };
  }
}
