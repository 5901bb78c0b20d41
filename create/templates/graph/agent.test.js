import assert from "node:assert/strict";
import { test } from "node:test";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "./agent.js";
import { countWords } from "./count-words.js";

test("words are counted", () => {
  assert.equal(countWords("One, two – and three."), 4);
});

test("the agent knows its tool, its skill and its memory, and answers", async () => {
  const requests = [];
  const watch = {
    handleChatModelStart: (_model, [messages], _run, _parent, { options }) => {
      requests.push({ prompt: messages[0].text, tools: options.tools.map(({ name }) => name) });
    },
  };
  const agent = createAgent({ model: "offline", checkpointer: new MemorySaver() });
  const task = "Which TODO is in the notes? Do not change anything.";
  const { messages } = await agent.invoke(
    { messages: [{ role: "user", content: task }] },
    { configurable: { thread_id: "test" }, callbacks: [watch] },
  );
  assert.match(messages.at(-1).text, /notes\.md/);

  const [{ prompt, tools }] = requests;
  assert(tools.includes("count_words"));
  assert.match(prompt, /plain-report/);
  assert.match(prompt, /Reports go into the folder/);
});
