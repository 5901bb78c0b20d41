// A team: a researcher and a coder work at the same time, each with a context of its own; a reviewer reads
// what the coder wrote. One write needs a person, here a line of code.
// Usage: npm run build && node examples/run.mjs team
import assert from "node:assert/strict";
import type { BaseMessage } from "@langchain/core/messages";
import { Command, type Interrupt, isInterrupted } from "@langchain/langgraph";
import { createDeepAgent, type HitlRequest } from "deepagent-mcp";
import { PlayedModel, results } from "../support/played-model.ts";

const task = (subagent_type: string, description: string) => ({
  name: "task",
  args: { subagent_type, description },
});
const says = (messages: readonly BaseMessage[], text: string): boolean =>
  messages.some((message) => message.text.includes(text));

// With a real model: model: "anthropic:claude-sonnet-4-5-20250929"
const model = new PlayedModel(({ messages, tools }) => {
  if (tools.includes("task")) {
    const reports = results(messages);
    if (reports.length === 0) {
      return {
        calls: [task("researcher", "How do others name this?"), task("coder", "Write /code/add.js.")],
      };
    }
    if (reports.length === 2) return { calls: [task("reviewer", "Review /code/add.js.")] };
    return { text: reports.join("\n") };
  }
  if (says(messages, "You research")) return { text: "researcher: others call it `add`" };
  if (says(messages, "You review")) {
    return results(messages).length === 0
      ? { calls: [{ name: "read_file", args: { file_path: "/code/add.js" } }] }
      : { text: `reviewer: sound, ${results(messages)[0]?.trim()}` };
  }
  return results(messages).length === 0
    ? {
        calls: [
          {
            name: "write_file",
            args: { file_path: "/code/add.js", content: "export const add = (a, b) => a + b;" },
          },
        ],
      }
    : { text: "coder: written" };
});

const agent = createDeepAgent({
  model,
  interruptOn: { write_file: true },
  subagents: [
    {
      name: "researcher",
      description: "Finds out facts.",
      systemPrompt: "You research.",
      interruptOn: false,
    },
    { name: "coder", description: "Writes code.", systemPrompt: "You write code." },
    { name: "reviewer", description: "Reviews code.", systemPrompt: "You review.", interruptOn: false },
  ],
});

const thread = { configurable: { thread_id: "team" } };
const paused = await agent.invoke({ messages: [{ role: "user", content: "Build add()." }] }, thread);
assert(isInterrupted<HitlRequest>(paused));
const [request]: Array<Interrupt<HitlRequest>> = paused.__interrupt__;
assert(request?.id && request.value);
const { agent: path = [], actionRequests } = request.value;
const [call] = actionRequests;
assert(call?.preview);
console.log(`${path.map(({ name }) => name).join(" › ")} wants to run ${call.name}:\n${call.preview.detail}`);
assert.equal(call.name, "write_file");

const answers = { [request.id]: { decisions: [{ type: "approve" }] } };
const done = await agent.invoke(new Command({ resume: answers }), thread);
const answer = done.messages.at(-1)?.text ?? "";
console.log(answer);
assert.match(answer, /reviewer: sound/);
assert.deepEqual(Object.keys(done.files), ["/code/add.js"]);
