/** A tool of another MCP server as a tool of the agent. */
import { DynamicStructuredTool } from "@langchain/core/tools";
import type { CallToolResult, Tool } from "@modelcontextprotocol/client";
import { cutMiddle, oneLine } from "../../core/text.ts";
import { argumentsPreview } from "../../tools/diff-preview.ts";
import { type ContentBlock, type ToolResult, toolError } from "../../tools/tool.ts";
import { toolOutcome, withToolCallbacks } from "../calls/agent-tool.ts";
import type { AgentTool, ValidatedArgs } from "../contracts.ts";
import type { McpConnection } from "./connection.ts";

export interface McpToolOptions {
  name: string;
  connection: McpConnection;
  tool: Tool;
  /** The problem of the arguments; `undefined` if there is none. */
  problem: (args: Record<string, unknown>) => string | undefined;
  /** Whether the model takes media of this type. */
  acceptsMedia: (mimeType: string) => boolean;
}

/** Whether the server says that a call changes nothing. */
const isReadOnly = ({ annotations }: Tool): boolean => annotations?.readOnlyHint === true;

/** True if the server says that a second call with the same arguments changes nothing more. */
const isRepeatable = (tool: Tool): boolean => isReadOnly(tool) || tool.annotations?.idempotentHint === true;

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
      withToolCallbacks(call, offered, config, async () =>
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
    return resultOf(await connection.call(tool.name, args, signal, isRepeatable(tool)), acceptsMedia);
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

type McpBlock = CallToolResult["content"][number];

/** Characters beyond which text is cut. Text that is too large for the conversation goes into a file before that. */
const MAX_TEXT = 1_000_000;
/** Base64 characters of media beyond which a block is only described. */
const MAX_MEDIA = 7_000_000;

/** A server's answer as the model reads it. Media the model does not take is described. */
function resultOf(answer: CallToolResult, accepts: (mimeType: string) => boolean): ToolResult {
  const blocks = answer.content.map((block) => blockOf(block, accepts));
  const texts = blocks.flatMap((block) => (block.type === "text" ? [String(block["text"])] : []));
  const text = cutMiddle(texts.join("\n\n") || structuredText(answer, blocks), MAX_TEXT);
  if (answer.isError === true) return toolError(text || "the tool failed and gave no reason");
  const media = blocks.filter(({ type }) => type !== "text");
  if (media.length === 0) return { content: text || "The tool answered with nothing." };
  return { content: [...(text === "" ? [] : [{ type: "text", text }]), ...media] };
}

function structuredText({ structuredContent }: CallToolResult, blocks: readonly ContentBlock[]): string {
  return structuredContent === undefined || blocks.length > 0 ? "" : JSON.stringify(structuredContent);
}

function blockOf(block: McpBlock, accepts: (mimeType: string) => boolean): ContentBlock {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
    case "audio":
      return mediaBlock(block, accepts);
    case "resource_link":
      return text(`[Resource ${block.uri}${block.title ? `: ${block.title}` : ""}]`);
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return text(`[Resource ${resource.uri}]\n${resource.text}`);
      return text(`[Resource ${resource.uri}: ${resource.mimeType ?? "binary"}, not shown]`);
    }
    default:
      return text("[Content of an unknown kind, not shown]");
  }
}

function mediaBlock(
  { type, mimeType, data }: Extract<McpBlock, { type: "image" | "audio" }>,
  accepts: (mimeType: string) => boolean,
): ContentBlock {
  if (data.length > MAX_MEDIA || !accepts(mimeType)) {
    return text(`[${type} ${mimeType}, about ${Math.ceil((data.length * 3) / 4096)} kB, not shown]`);
  }
  return { type, mimeType, data };
}

const text = (words: string): ContentBlock => ({ type: "text", text: words });
