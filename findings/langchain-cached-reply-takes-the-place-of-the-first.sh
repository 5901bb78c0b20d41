#!/usr/bin/env bash
# @langchain/core 1.4.0 (a chat model with a cache) and @langchain/langgraph 1.7.3 (messages in the state): a reply from the
# cache has the id of the first one. LangGraph's reducer takes equal ids for an update, so in a thread where a node asks the
# same question twice, the second reply is put into the place of the first: the thread ends with the question.
# A good guess is that a cache changes the cost of a call, and not what the conversation holds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/openai@1.5.8 @langchain/core@1.4.0 @langchain/langgraph@1.7.3
cat >run.mjs <<'JS'
import { InMemoryCache } from "@langchain/core/caches";
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";

let requests = 0;
const fetch = async () =>
  Response.json({
    id: `chatcmpl-${(requests += 1)}`,
    object: "chat.completion",
    created: 1,
    model: "gpt-4o",
    choices: [{ index: 0, message: { role: "assistant", content: "Noon." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });
async function thread(cache) {
  const model = new ChatOpenAI({ model: "gpt-4o", apiKey: "not-a-key", cache, configuration: { fetch } });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("ask", async ({ messages }) => ({ messages: [await model.invoke([messages.at(-1)])] }))
    .addEdge(START, "ask")
    .addEdge("ask", END)
    .compile({ checkpointer: new MemorySaver() });
  const question = { messages: [{ role: "user", content: "What time is it?" }] };
  const config = { configurable: { thread_id: "1" } };
  await graph.invoke(question, config);
  return (await graph.invoke(question, config)).messages.map(({ type }) => type).join(" ");
}
const [without, withCache] = [await thread(undefined), await thread(new InMemoryCache())];
console.log("without a cache:", without);
console.log("with a cache:   ", withCache);
if (without !== "human ai human ai" || withCache !== "human ai human") {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
