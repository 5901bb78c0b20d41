/**
 * A small MCP server on standard input and output, run as a process by tests:
 * `node toy-server.mjs <log file>`, where the log gets one line per call that took effect.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { filesIn } from "../../support/files-in.ts";
import { programOf } from "../../support/bundled.ts";

/** A picture of one pixel. The server calls it a JPEG. */
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const SOURCE = `
import { appendFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const [log, mode] = process.argv.slice(2);
console.error("starting with", process.env.TOY_KEY);
if (mode === "silent") await new Promise(() => setInterval(() => {}, 1000));
if (mode === "stubborn") for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => {});
const text = (text) => ({ content: [{ type: "text", text }] });
const server = new McpServer({ name: "toy", version: "1.0.0" });
const readOnly = { annotations: { readOnlyHint: true } };
server.registerTool(
  "look.up",
  { description: "Looks a word up.", inputSchema: z.object({ word: z.string() }), ...readOnly },
  ({ word }) => text("meaning of " + word),
);
server.registerTool(
  "store",
  { description: "Stores a word.", inputSchema: z.object({ word: z.string() }) },
  ({ word }) => {
    appendFileSync(log, word + "\\n");
    return text("stored " + word);
  },
);
server.registerTool("environment", { description: "Names its variables.", inputSchema: z.object({}), ...readOnly }, () =>
  text(JSON.stringify({ names: Object.keys(process.env).sort(), key: process.env.TOY_KEY ?? null, characters: process.env.TOY_KEY?.length })),
);
server.registerTool("large", { description: "Says a lot.", inputSchema: z.object({}), ...readOnly }, () =>
  text("word ".repeat(40_000)),
);
server.registerTool("picture", { description: "Draws.", inputSchema: z.object({}), ...readOnly }, () => ({
  content: [{ type: "image", mimeType: "image/jpeg", data: "${PNG}" }],
}));
server.registerTool("refuse", { description: "Refuses.", inputSchema: z.object({}), ...readOnly }, () => ({
  isError: true,
  ...text("not today"),
}));
server.registerTool("crash", { description: "Ends.", inputSchema: z.object({}) }, () => process.exit(3));
server.registerTool("hang", { description: "Never answers.", inputSchema: z.object({}), ...readOnly }, () => {
  appendFileSync(log, "hanging\\n");
  return new Promise(() => {});
});
await server.connect(new StdioServerTransport());
if (mode === "stubborn") setInterval(() => {}, 1000);
`;

export interface ToyServer {
  command: string;
  args: string[];
  /** Lines of the calls that took effect so far. */
  effects(): string[];
}

/** Makes the program; it is gone after the test. */
export async function toyServer(mode?: "silent" | "stubborn"): Promise<ToyServer> {
  const script = await programOf(SOURCE);
  const log = join(filesIn(), "effects.log");
  return {
    command: process.execPath,
    args: [script, log, ...(mode === undefined ? [] : [mode])],
    effects: () => {
      try {
        return readFileSync(log, "utf8").split("\n").filter(Boolean);
      } catch {
        return []; // nothing has taken effect yet
      }
    },
  };
}
