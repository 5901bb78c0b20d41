// A research agent: a search tool, a tool to think with, notes below /research/ that outlive the thread.
// Usage: npm run build && node examples/run.mjs research
import assert from "node:assert/strict";
import { InMemoryStore } from "@langchain/langgraph";
import { z } from "zod";
import {
  CompositeBackend,
  createDeepAgent,
  StateBackend,
  StoreBackend,
  type ToolFunction,
} from "deepagent-mcp";
import { PlayedModel, results } from "../support/played-model.ts";

const LIBRARY: Readonly<Record<string, string>> = {
  tides: "Spring tides follow the new and the full moon by about a day and a half.",
  harbours: "Shallow harbours delay high water.",
};

const search: ToolFunction = {
  name: "search",
  description: "Searches the library. Answers with the article on a subject.",
  kind: "read",
  schema: z.object({ subject: z.string() }),
  invoke: ({ subject }) =>
    LIBRARY[String(subject)] ?? `Nothing on ${String(subject)}. Subjects: ${Object.keys(LIBRARY).join(", ")}`,
};

const think: ToolFunction = {
  name: "think",
  description: "Notes a thought: what is known, what is missing, what to do next. Changes nothing.",
  kind: "plan",
  schema: z.object({ thought: z.string() }),
  invoke: ({ thought }) => `Noted: ${String(thought)}`,
};

// With a real model: model: "anthropic:claude-sonnet-4-5-20250929"
const model = new PlayedModel(({ messages }) => {
  const [, found] = results(messages);
  if (results(messages).length === 0) {
    return {
      calls: [
        { name: "think", args: { thought: "I need facts on tides before I write." } },
        { name: "search", args: { subject: "tides" } },
      ],
    };
  }
  if (results(messages).length === 2) {
    return { calls: [{ name: "write_file", args: { file_path: "/research/tides.md", content: found } }] };
  }
  return { text: `${found} (kept in /research/tides.md)` };
});

const store = new InMemoryStore();
const agent = createDeepAgent({
  model,
  tools: [search, think],
  store,
  systemPrompt: "You research. Think before you search, and keep what you find below /research/.",
  backend: new CompositeBackend(StateBackend, {
    "/research/": (runtime) => new StoreBackend(runtime, { namespace: ["research"] }),
  }),
});

const { messages } = await agent.invoke({ messages: [{ role: "user", content: "When are spring tides?" }] });
const answer = messages.at(-1)?.text ?? "";
console.log(answer);
assert.match(answer, /Spring tides follow/);
const kept = await store.search(["research"]);
assert.deepEqual(
  kept.map(({ key }) => key),
  ["/tides.md"],
  "the note is in the store, for every later thread",
);
