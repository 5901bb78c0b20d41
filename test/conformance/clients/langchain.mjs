/** LangChain MCP adapters: prints what the tool gives to a model for one run. */
import { MultiServerMCPClient } from "@langchain/mcp-adapters";

const [task, command, ...args] = process.argv.slice(2);
const client = new MultiServerMCPClient({ mcpServers: { agent: { transport: "stdio", command, args } } });
try {
  const tools = await client.getTools();
  const run = tools.find(({ name }) => name.endsWith("run_deep_agent"));
  console.log(JSON.stringify(await run.invoke({ task })));
} finally {
  await client.close();
}
