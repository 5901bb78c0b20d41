import { DynamicStructuredTool } from "@langchain/core/tools";
import type { Tool } from "@modelcontextprotocol/client";
import { oneLine } from "../../core/text.ts";
import { argumentsPreview } from "../../tools/diff-preview.ts";
import { type ToolResult, toolError } from "../../tools/tool.ts";
import { type AgentTool, type ValidatedArgs, toolOutcome } from "../agent-tool.ts";
import { toldCall } from "../told-call.ts";
import type { McpConnection } from "./connection.ts";
import { resultOf } from "./result.ts";

export interface McpToolOptions {
  name: string;
  connection: McpConnection;
  tool: Tool;
  /** What is wrong with arguments; `undefined`: nothing. */
  problem: (args: Record<string, unknown>) => string | undefined;
  /** Whether the model takes media of this type. */
  acceptsMedia: (mimeType: string) => boolean;
}

/** Whether the server says that a call changes nothing. */
const isReadOnly = ({ annotations }: Tool): boolean => annotations?.readOnlyHint === true;

/** One tool of an MCP server as a tool of the agent. */
export function mcpAgentTool(options: McpToolOptions): AgentTool {
  const { name, tool, connection } = options;
  const offered = new DynamicStructuredTool({
    name,
    description: tool.description ?? tool.name,
    // OpenAI refuses an object schema that leaves its properties out.
    schema: { ...tool.inputSchema, properties: tool.inputSchema.properties ?? {} },
    func: () => Promise.reject(new Error(`${name} runs inside a deep agent only`)),
  });
  return {
    name,
    kind: isReadOnly(tool) ? "read" : "execute",
    offered,
    validate: (args) => validate(options, args),
    run: (call, { context, config }) =>
      toldCall(call, offered, config, async () =>
        toolOutcome(call, await run(options, call.args, context.signal)),
      ),
    preview: async (args) =>
      argumentsPreview(
        oneLine(`${tool.title ?? tool.name}, a tool of the MCP server ${connection.name}`, 160),
        args,
      ),
    pathOf: () => undefined,
  };
}

function validate({ name, problem }: McpToolOptions, args: unknown): ValidatedArgs {
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    return { ok: false, message: `Invalid arguments for ${name}: expected an object` };
  }
  const given = { ...args };
  const found = problem(given);
  return found === undefined
    ? { ok: true, args: given }
    : { ok: false, message: `Invalid arguments for ${name}: ${oneLine(found, 1000)}` };
}

async function run(
  { connection, tool, acceptsMedia }: McpToolOptions,
  args: Record<string, unknown>,
  signal: AbortSignal,
): Promise<ToolResult> {
  try {
    return resultOf(await connection.call(tool.name, args, signal), acceptsMedia);
  } catch (error) {
    signal.throwIfAborted();
    const reason = connection.reason(error);
    const answered = error instanceof Error && typeof Reflect.get(error, "code") === "number";
    if (answered) return toolError(`The MCP server ${connection.name} refused the call: ${reason}`);
    const doubt = isReadOnly(tool)
      ? "Try again, or do without it."
      : "Whether the call took effect is unknown: check before you make it again.";
    return toolError(`The MCP server ${connection.name} failed: ${reason}. ${doubt}`);
  }
}
