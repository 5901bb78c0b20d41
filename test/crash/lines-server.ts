// Another MCP server, whose tool appends a line to the file it was started with. It ends with whoever started it.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

interface Request {
  id?: number;
  method: string;
  params?: { protocolVersion?: string; arguments?: { line?: string } };
}

const [, , file = ""] = process.argv;

async function answer({ method, params = {} }: Request): Promise<object> {
  if (method === "initialize") {
    const serverInfo = { name: "lines", version: "1" };
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method === "tools/list") {
    const inputSchema = { type: "object", properties: { line: { type: "string" } }, required: ["line"] };
    return { tools: [{ name: "append", description: "Appends a line.", inputSchema }] };
  }
  await delay(Math.random() * 5);
  appendFileSync(file, `${params.arguments?.line ?? ""}\n`);
  await delay(Math.random() * 200); // to be met at work
  return { content: [{ type: "text", text: "appended" }] };
}

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const request = JSON.parse(line) as Request;
    if (request.id === undefined) return;
    void answer(request).then((result) =>
      process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: request.id, result })}\n`),
    );
  })
  .on("close", () => process.exit(0));
