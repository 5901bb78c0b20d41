// Gives the agent a task, and asks you before it changes a file: npm start -- "What to do"
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent } from "./agent.js";

const task = process.argv.slice(2).join(" ") || "Which TODO is in the notes? Do not change anything.";
const agent = createAgent({ checkpointer: new MemorySaver() });
const thread = { configurable: { thread_id: "main" } };

console.log(`Task: ${task}\n`);
let state = await agent.invoke({ messages: [{ role: "user", content: task }] }, thread);
while (state.__interrupt__?.length > 0) {
  const resume = {};
  for (const { id, value } of state.__interrupt__) {
    resume[id] = { decisions: [] };
    for (const request of value.actionRequests) resume[id].decisions.push(await decide(request));
  }
  state = await agent.invoke(new Command({ resume }), thread);
}
console.log(state.messages.at(-1).text);

/** Asks the person at the terminal; without one, nothing is approved. */
async function decide({ name, args }) {
  console.log(`The agent wants to call ${name}:\n${JSON.stringify(args, null, 2)}`);
  if (!stdin.isTTY) return { type: "reject", message: "Nobody is there to approve it." };
  const terminal = createInterface({ input: stdin, output: stdout });
  const answer = await terminal.question("Approve? [y/N] ");
  terminal.close();
  return answer.trim().toLowerCase() === "y"
    ? { type: "approve" }
    : { type: "reject", message: "The person said no." };
}
