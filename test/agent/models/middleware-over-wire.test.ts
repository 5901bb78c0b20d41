import { createServer } from "node:http";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import {
  type AgentMiddleware,
  anthropicPromptCachingMiddleware,
  createAgent,
  openAIModerationMiddleware,
  providerToolSearchMiddleware,
} from "langchain";
import { expect, test } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { wireServer } from "../../support/wire-server.ts";
import { addressOf } from "../../support/http-address.ts";

const go = { messages: [new HumanMessage("go")] };
const lookup = new DynamicStructuredTool({
  name: "lookup",
  description: "Finds things.",
  schema: z.object({}),
  func: async () => "found",
});

/** A model of Anthropic that calls `lookup` once, and what it was sent. */
async function claude() {
  const server = await wireServer(({ number }) =>
    number === 0 ? { toolCalls: [{ name: "lookup", args: {} }] } : { text: "end" },
  );
  const { model } = await resolveModel({
    model: "anthropic:claude-sonnet-4-5-20250929",
    env: server.env("anthropic"),
  });
  return { model, server };
}

test("LangChain's prompt caching takes the place of ours, and its marks reach Anthropic", async () => {
  const { model, server } = await claude();
  const caching = anthropicPromptCachingMiddleware({ ttl: "1h", minMessagesToCache: 1 });
  await createDeepAgent({ model, tools: [lookup], middleware: [caching] }).invoke(go);
  const marks = server.requests.map(({ body }) => JSON.stringify(body).match(/"cache_control":\{[^}]*\}/g));
  expect(server.requests).toHaveLength(2);
  expect(new Set(marks.flat())).toEqual(new Set(['"cache_control":{"type":"ephemeral","ttl":"1h"}']));
});

test("LangChain's tool search adds Anthropic's own tool, and holds back those it finds", async () => {
  const { model, server } = await claude();
  const searching = providerToolSearchMiddleware({ searchableTools: ["lookup", "grep"] });
  const { messages } = await createDeepAgent({ model, tools: [lookup], middleware: [searching] }).invoke(go);
  expect(messages.map(({ text }) => text)).toEqual(["go", "", "found", "end"]);
  const tools = server.requests[0]?.body["tools"] as Array<Record<string, unknown>>; // as they were sent
  expect(tools.at(-1)).toMatchObject({ type: "tool_search_tool_bm25_20251119" });
  expect(tools.filter((tool) => tool["defer_loading"] === true).map(({ name }) => name)).toEqual([
    "grep",
    "lookup",
  ]);
});

/** OpenAI's service for moderation, which flags what says "bomb". */
async function moderation(): Promise<{ model: ChatOpenAI; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const pieces: string[] = [];
    request.setEncoding("utf8").on("data", (piece: string) => pieces.push(piece));
    request.on("end", () => {
      const { input } = JSON.parse(pieces.join("")) as { input: string }; // what the package sends
      asked.push(input);
      const flagged = input.includes("bomb");
      const result = { flagged, categories: { violence: flagged }, category_scores: { violence: 1 } };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id: "m", model: "omni-moderation-latest", results: [result] }));
    });
  });
  const configuration = { baseURL: `${await addressOf(server)}/v1` };
  return { model: new ChatOpenAI({ apiKey: "none", configuration }), asked };
}

test.each<[string, string, string, "end" | "replace"]>([
  ["an input, ending the run", "a bomb", "fine", "end"],
  ["an input, replacing it", "a bomb", "fine", "replace"],
  ["an answer, replacing it", "go", "a bomb", "replace"],
  ["nothing", "go", "fine", "end"],
])("OpenAI's moderation does the same here as in LangChain's agent: it flags %s", async (...given) => {
  const [, input, answer, exitBehavior] = given;
  type Agent = { invoke(input: typeof go): Promise<{ messages: BaseMessage[] }> };
  type Create = (params: { model: BaseChatModel; middleware: AgentMiddleware[] }) => Agent;
  const observed = async (create: Create) => {
    const service = await moderation();
    const model = scriptedModel(() => ({ text: answer }));
    const middleware = [openAIModerationMiddleware({ model: service.model, exitBehavior })];
    const { messages } = await create({ model, middleware }).invoke({ messages: [new HumanMessage(input)] });
    const calls = model.requests.map(({ messages: seen }) => seen.at(-1)?.text);
    return { asked: service.asked, calls, messages: messages.map(({ text }) => text) };
  };
  expect(await observed((params) => createDeepAgent(params))).toEqual(
    await observed((params) => createAgent(params)),
  );
});
