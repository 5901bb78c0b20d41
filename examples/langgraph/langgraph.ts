// What a client of `langgraph dev` gets from this graph: its schema, its stream, an approval, and its state.
// Usage: npm run build && node examples/run.mjs langgraph
// The server itself: docs/langchain.md
import assert from "node:assert/strict";
import { Command, MemorySaver } from "@langchain/langgraph";
import { agent } from "./agent.ts";

const PUBLIC = ["files", "messages", "todos"];
const names = (value: object): string[] => Object.keys(value).filter((name) => name !== "__interrupt__");

agent.checkpointer = new MemorySaver(); // a server sets its own in the same way
const thread = { configurable: { thread_id: "tides" } };
const input = { messages: [{ role: "user", content: "Note when spring tides are." }] };

const seen = new Set<string>();
for await (const [path, values] of await agent.stream(input, {
  ...thread,
  streamMode: "values",
  subgraphs: true,
})) {
  if (path.length === 0) for (const name of names(values)) seen.add(name);
}
console.log("the stream shows:", [...seen].sort().join(", "));
assert.deepEqual([...seen].sort(), PUBLIC);

const { tasks } = await agent.getState(thread);
const [open] = tasks.flatMap(({ interrupts }) => interrupts);
assert(open?.id);
console.log("waits for an answer to:", open.value.actionRequests[0].name);

const answer = new Command({ resume: { [open.id]: { decisions: [{ type: "approve" }] } } });
const done = await agent.invoke(answer, thread);
console.log(done.messages.at(-1)?.text);

const { values } = await agent.getState(thread);
assert.deepEqual(names(values).sort(), PUBLIC);
assert.deepEqual(Object.keys(values.files), ["/tides.md"]);
