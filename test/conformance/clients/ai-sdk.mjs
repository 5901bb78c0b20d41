/** AI SDK: prints the structured result of one run. */
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";

const [task, command, ...args] = process.argv.slice(2);
const client = await createMCPClient({ transport: new StdioTransport({ command, args }) });
try {
  const { run_deep_agent: run } = await client.tools();
  const result = await run.execute({ task }, { toolCallId: "call_1", messages: [] });
  console.log(JSON.stringify(result));
} finally {
  await client.close();
}
