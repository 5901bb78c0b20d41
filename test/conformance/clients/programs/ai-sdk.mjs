/** AI SDK: prints the structured result of one tool call. Approves what it is asked. */
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";

const [target, tool, args] = process.argv.slice(2, 5).map((text) => JSON.parse(text));
const transport = "url" in target ? { type: "http", url: target.url } : new StdioTransport(target);
const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
client.onElicitationRequest(ElicitationRequestSchema, () => ({
  action: "accept",
  content: { decision: "approve" },
}));
try {
  const tools = await client.tools();
  const result = await tools[tool].execute(args, { toolCallId: "call_1", messages: [] });
  console.log(JSON.stringify(result));
} finally {
  await client.close();
}
