/** LangChain MCP adapters: prints what a tool gives to a model. */
import { MultiServerMCPClient } from "@langchain/mcp-adapters";

const [target, tool, args] = process.argv.slice(2, 5).map((text) => JSON.parse(text));
const transport = "url" in target ? "http" : "stdio";
const client = new MultiServerMCPClient({ mcpServers: { agent: { transport, ...target } } });
try {
  const tools = await client.getTools();
  const found = tools.find(({ name }) => name.endsWith(tool));
  console.log(JSON.stringify(await found.invoke(args)));
} finally {
  await client.close();
}
