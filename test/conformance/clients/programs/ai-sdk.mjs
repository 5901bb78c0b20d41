/** AI SDK: lets a model carry out a prompt with the tools of a server, over stdio or HTTP. Approves what it is asked. */
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs } from "ai";

const [target, url, prompt] = process.argv.slice(2, 5).map((text) => JSON.parse(text));
const transport = "url" in target ? { type: "http", url: target.url } : new StdioTransport(target);
const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => ({
  action: "accept",
  content: params.requestedSchema.properties.decision ? { decision: "approve" } : { answer: "blue" },
}));
try {
  const tools = await client.tools();
  const model = createOpenAICompatible({ name: "lab", baseURL: `${url}/v1` })("m");
  const { text } = await generateText({ model, tools, prompt, stopWhen: stepCountIs(50) });
  console.log(text);
} finally {
  await client.close();
}
