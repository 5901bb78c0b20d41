import { z } from "zod";
import type { Backend } from "../../backends/backend.ts";
import type { ContentBlock, ToolResult } from "../../tools/tool.ts";
import type { ToolCall } from "../protocol/call.ts";
import { type Media, type Outcome, refused, unknownRun } from "../protocol/outcome.ts";
import { defineTool } from "../protocol/tool.ts";

const input = z.strictObject({
  path: z.string().min(1).max(4096).describe("Such as /workspace/report.md or /memories/a.md"),
  run_id: z.string().min(1).max(200).optional().describe("Needed for files outside the mounts"),
  offset: z.int().optional().describe("First line, from 0"),
  limit: z.int().min(1).optional(),
});
type Input = z.output<typeof input>;

export const readAgentFile = defineTool({
  name: "read_agent_file",
  title: "Read a file of the agent",
  kind: "read",
  scopes: ["read"],
  description: "Reads a file as the agent sees it, with line numbers and in pages.",
  input,
  output: z.object({ path: z.string(), content: z.string() }),
  handle: async (args, call) => {
    const backend = await backendFor(args, call);
    if (backend === undefined) return unknownRun(args.run_id ?? "");
    return outcomeOf(args.path, await read(args, backend, call));
  },
});

async function backendFor(
  { run_id: id }: Input,
  { runs, principal }: ToolCall,
): Promise<Backend | undefined> {
  return id === undefined ? runs.files(principal) : runs.runFiles(principal, id);
}

/** The agent's own tool reads, so that pages, limits and errors are the same. */
async function read({ path, offset, limit }: Input, backend: Backend, call: ToolCall): Promise<ToolResult> {
  const [{ readFileTool }, { resolveOptions }, { parseArguments }] = await Promise.all([
    import("../../tools/read-file.ts"),
    import("../../tools/options.ts"),
    import("../../tools/call.ts"),
  ]);
  const tool = readFileTool(resolveOptions({}));
  const parsed = parseArguments(tool, {
    file_path: path,
    ...(offset === undefined ? {} : { offset }),
    ...(limit === undefined ? {} : { limit }),
  });
  if (!parsed.ok) return { status: "error", content: parsed.message };
  const { id, signal } = call.context.mcpReq;
  return tool.handle(parsed.args, { callId: String(id), signal, backend });
}

function outcomeOf(path: string, { content, status }: ToolResult): Outcome {
  if (typeof content === "string") {
    return status === "error" ? refused(content) : { kind: "file", path, content, media: [] };
  }
  const media = content.flatMap(mediaOf);
  return {
    kind: "file",
    path,
    content: `${path}: ${media.map(({ mimeType }) => mimeType).join(", ")}`,
    media,
  };
}

function mediaOf({ type, mimeType, data }: ContentBlock): Media[] {
  if (typeof mimeType !== "string" || typeof data !== "string") return [];
  return [{ type: type === "image" || type === "audio" ? type : "resource", mimeType, data }];
}
