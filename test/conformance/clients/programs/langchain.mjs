/** LangChain MCP adapters: lets a model carry out a prompt with the tools of a server, over stdio or HTTP. */
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";

const [target, url, prompt] = process.argv.slice(2, 5).map((text) => JSON.parse(text));
const transport = "url" in target ? "http" : "stdio";
const client = new MultiServerMCPClient({ mcpServers: { agent: { transport, ...target } } });
try {
  const model = new ChatOpenAI({ model: "m", apiKey: "none", configuration: { baseURL: `${url}/v1` } });
  const agent = createAgent({ model, tools: await client.getTools() });
  const messages = [{ role: "user", content: prompt }];
  const result = await agent.invoke({ messages }, { recursionLimit: 120 });
  console.log(result.messages.at(-1).content);
} finally {
  await client.close();
}
