/** A tool of another MCP server as a tool of the agent. */
import { DynamicStructuredTool } from "@langchain/core/tools";
import type { Tool } from "@modelcontextprotocol/client";
import { cutMiddle, displayName, oneLine } from "../../core/text.ts";
import { defined, isRecord, parsedJson, recordOf } from "../../core/unknown.ts";
import { argumentsPreview } from "../../tools/call-preview.ts";
import { TooManyQuestions } from "../../tools/question-quota.ts";
import { mendedArguments } from "../../tools/mend-arguments.ts";
import { type ContentBlock, type ToolResult, toolError } from "../../tools/tool.ts";
import { offeredFunction } from "../calls/offered-call.ts";
import type { AgentTool, CallScope } from "../contracts/middleware.ts";
import { NO_LIMITS, shownBlock } from "../models/media.ts";
import type { ReadResult, TheirTask } from "./answers.ts";
import type { CallOptions, McpConnection } from "./connection.ts";
import { McpUnavailableError } from "./failure-reasons.ts";
import { resultOfTask } from "./their-task.ts";
import { type Continuation, type InputRequired, answerInputRequests } from "./elicitation.ts";
import type { SchemaCheck } from "./schema-checks.ts";

interface McpToolOptions {
  name: string;
  connection: McpConnection;
  tool: Tool;
  /** Checks arguments by the tool's own schema. */
  problem: SchemaCheck;
  /** Checks results; absent if the tool promises no form of them. */
  resultProblem: SchemaCheck | undefined;
}

/** True if the server declares that a call changes nothing. */
const isReadOnly = ({ annotations }: Tool): boolean => annotations?.readOnlyHint === true;

/** True if the server declares that a second call with the same arguments changes nothing more. */
const isRepeatable = (tool: Tool): boolean => isReadOnly(tool) || tool.annotations?.idempotentHint === true;

interface ServerTool extends Pick<AgentTool, "name" | "kind"> {
  description: string;
  schema: Tool["inputSchema"];
  /** The tool's name in requests for approval. */
  summary: string;
  label?: string | undefined;
  problem?: SchemaCheck;
  run: (args: Record<string, unknown>, scope: CallScope) => Promise<ToolResult>;
}

export function serverTool({ name, kind, summary, label, problem, run, ...told }: ServerTool): AgentTool {
  const offered = new DynamicStructuredTool({ name, ...told, func: offeredFunction(name) });
  return {
    name,
    kind,
    offered,
    validate: (given) => {
      const check = (args: unknown) => (isRecord(args) ? problem?.(args) : "expected an object");
      let [args, found] = [given, check(given)];
      if (found !== undefined) {
        args = mendedArguments(told.schema, given);
        found = check(args);
      }
      if (isRecord(args) && found === undefined) return { ok: true, args: { ...args } };
      return { ok: false, message: `Invalid arguments for ${name}: ${oneLine(found ?? "", 1000)}` };
    },
    run: (call, scope) => scope.observe(call, offered, () => run(call.args, scope)),
    preview: async (args) => ({ ...argumentsPreview(summary, args), ...defined({ title: label }) }),
    pathOf: () => undefined,
  };
}

export function mcpAgentTool(options: McpToolOptions): AgentTool {
  const { name, title, description = name, inputSchema: schema } = options.tool;
  const called = title === undefined || title === name ? "" : ` (“${oneLine(title, 80)}”)`;
  return serverTool({
    name: options.name,
    kind: isReadOnly(options.tool) ? "read" : "execute",
    description,
    schema,
    // The server's own name comes first: a tool's name and title are texts of that server.
    summary: `MCP server ${oneLine(options.connection.name, 80)}, tool ${oneLine(name, 80)}${called}`,
    label: called === "" ? undefined : displayName(oneLine(`${options.connection.name}: ${title}`, 120)),
    problem: options.problem,
    run: (args, scope) => callServerTool(options, args, scope),
  });
}

/** Makes a call, makes it again with a person's answers if the server asks, at most 15 times, and waits for its task. */
async function callServerTool(
  options: McpToolOptions,
  args: Record<string, unknown>,
  scope: CallScope,
): Promise<ToolResult> {
  const { context, isPause } = scope;
  const { connection } = options;
  // The task may have begun before this process.
  let task = context.handle as TheirTask | undefined; // kept below
  const failure = (error: unknown): ToolResult => {
    context.signal.throwIfAborted();
    if (isPause(error)) throw error;
    return toolError(failureText(error, options));
  };
  let continuation: Continuation | undefined;
  for (let round = 0; !task && round < 16; round += 1) {
    try {
      const answer = await attempt(options, args, scope, { continuation });
      if ("content" in answer) return answer;
      if ("taskId" in answer) {
        await context.keep?.((task = answer));
        break;
      }
      // Stops here until a person has answered; the call then begins again from its top.
      const given = await answerInputRequests(connection.name, answer, context.ask);
      if (answer.isRefusal !== true) continuation = given;
      else if (Object.values(given.inputResponses).some(({ action }) => action !== "accept"))
        return toolError(notOpenedText(connection.name, answer));
    } catch (error) {
      return failure(error);
    }
  }
  return task === undefined
    ? toolError(`The MCP server ${connection.name} asked again and again, so the call was given up.`)
    : resultOfTask(connection, task, context, () => attempt(options, {}, scope, { task })).then(
        (answer) => ("blocks" in answer ? modelResult(answer, noteOn(answer, options)) : answer),
        failure,
      );
}

/** Names the addresses that were not opened, so that the model can pass them on. */
function notOpenedText(server: string, { inputRequests = {} }: InputRequired): string {
  const asked = Object.values(inputRequests).map(({ params }) => {
    const { url, message } = recordOf(params);
    return oneLine(`${String(url)} (${String(message)})`, 600);
  });
  return `The MCP server ${server} made no call: a person has to open an address first, and did not. ${asked.join("; ")}`;
}

async function attempt(
  options: McpToolOptions,
  args: Record<string, unknown>,
  { context: { signal, hold }, step }: CallScope,
  more: Pick<CallOptions, "continuation" | "task">,
): Promise<ToolResult | InputRequired | TheirTask> {
  const { connection, tool } = options;
  let lost: string | undefined;
  const lose = (why: string): void => {
    lost = `The MCP server ${connection.name} asked a question during ${options.name}. Nobody was asked, because ${why}; the server was told that it is cancelled.`;
    step.tell({ kind: "warning", message: lost });
  };
  // A result that was requested in vain is requested again by `resultOfTask`.
  const own = { isRepeatable: more.task === undefined && isRepeatable(tool), hold, lose, ...more };
  const answer = await connection.call(tool, args, signal, own);
  if ("blocks" in answer) return modelResult(answer, lost ?? noteOn(answer, options));
  if (!("unsent" in answer)) return answer;
  if (more.task) throw new McpUnavailableError(answer.unsent);
  const { name } = connection;
  return toolError(`The MCP server ${name} is not available: ${answer.unsent}. The call was not made.`);
}

/** Describes a call without a result. The text about a call that was sent never claims that it did nothing. */
function failureText(error: unknown, { connection, tool }: McpToolOptions): string {
  const server = `The MCP server ${connection.name}`;
  const reason = connection.reason(error);
  const code: unknown = Reflect.get(Object(error), "code");
  if (error instanceof TooManyQuestions)
    return `${server} was given up: ${reason}. Ask the person for what it needs, and pass that as arguments.`;
  const isUnbegun = code === INVALID_PARAMS || code === METHOD_NOT_FOUND;
  if (typeof code === "number" || code === "INVALID_RESULT") {
    const doubt = isUnbegun || isReadOnly(tool) ? "" : ", and may have run it anyway";
    return `${server} answered the call with an error${doubt}: ${reason}`;
  }
  const doubt = "Whether the call took effect is unknown: check before you make it again.";
  return `${server} failed: ${reason}. ${isReadOnly(tool) ? "Try again, or do without it." : doubt}`;
}

/** Codes of JSON-RPC for calls that no tool began. */
const [METHOD_NOT_FOUND, INVALID_PARAMS] = [-32_601, -32_602];

/** Characters beyond which text is cut. Text that is too large for the conversation goes into a file before that. */
const MAX_TEXT = 1_000_000;
/** Base64 characters of media beyond which a block is only described. */
const MAX_MEDIA = 7_000_000;

/** A server's answer as the model reads it, with a sentence about parts that do not fit. */
export function modelResult(answer: ReadResult, note?: string): ToolResult {
  // Media have the type of their bytes; unreadable ones are described.
  const blocks = answer.blocks.map((block): ContentBlock => {
    const { type, data = "", mimeType = "" } = block;
    const { length } = String(data);
    if (type === "text" || length <= MAX_MEDIA) return shownBlock(block, NO_LIMITS);
    const size = Math.ceil((length * 3) / 4096);
    return { type: "text", text: `[${type} ${String(mimeType)}, about ${size} kB, not shown]` };
  });
  const said = blocks.flatMap((block) => (block.type === "text" ? [String(block["text"])] : []));
  const { structuredContent } = answer;
  const isSilent = structuredContent !== undefined && said.every((text) => text.trim() === "");
  // Error texts often lack the code and fields of the error. Some repeat them as JSON.
  const addsFacts = answer.isError && !said.some((text) => isRecord(parsedJson(text)));
  const isShown = structuredContent !== undefined && (isSilent || addsFacts);
  const texts = [...(isSilent ? [] : said), ...(isShown ? [JSON.stringify(structuredContent)] : [])];
  if (note !== undefined) texts.push(`[${note}]`);
  const text = cutMiddle(texts.join("\n\n"), MAX_TEXT);
  if (answer.isError) return toolError(text || "the tool failed and gave no reason");
  const media = blocks.filter(({ type }) => type !== "text");
  if (media.length === 0) return { content: text || "The tool returned nothing." };
  return { content: [...(text === "" ? [] : [{ type: "text", text }]), ...media] };
}

/** Names the part of an answer that is not as it should be. The call was carried out all the same. */
function noteOn({ structuredContent, isError, isOdd }: ReadResult, options: McpToolOptions) {
  if (isOdd) return "Parts of this answer do not follow MCP, and are passed unchanged.";
  if (isError || !options.resultProblem) return undefined;
  if (structuredContent === undefined) return "The tool promised structured content, but returned none.";
  const problem = options.resultProblem(structuredContent);
  return problem && `This answer does not match the tool's outputSchema: ${oneLine(problem, 300)}`;
}
