// Size of what every request carries, and how much of a request repeats the one before.
// Usage: npm run build && node bench/prompt/bench.mjs
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { createDeepAgent } from "../../dist/index.js";

const TURNS = 30;

/** Writes and reads files in turn, and keeps each request as the bytes a provider would get. */
class RecordingModel extends BaseChatModel {
  requests = [];
  _llmType() {
    return "recording";
  }
  bindTools(tools) {
    const schemas = JSON.stringify(tools.map((tool) => convertToOpenAITool(tool)));
    return { invoke: (messages) => this.answer(messages, schemas) };
  }
  async answer(messages, schemas) {
    const [system, ...others] = messages;
    const dialogue = others.map((message) => JSON.stringify(message.toDict())).join("");
    this.requests.push({ schemas, system: system.text, all: schemas + system.text + dialogue });
    const turn = this.requests.length;
    if (turn >= TURNS) return new AIMessage({ id: `m${turn}`, content: "done" });
    const path = `/notes/${Math.floor(turn / 2)}.md`;
    const call =
      turn % 2 === 0
        ? { name: "write_file", args: { file_path: path, content: `note ${turn}\n`.repeat(40) } }
        : { name: "ls", args: { path: "/" } };
    const tool_calls = [0, 1].map((index) => ({ ...call, id: `c${turn}_${index}` }));
    return new AIMessage({ id: `m${turn}`, content: "", tool_calls });
  }
  async _generate() {
    throw new Error("called without tools");
  }
}

function repeated(before, after) {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at += 1;
  return at;
}

const model = new RecordingModel({});
const agent = createDeepAgent({ model });
await agent.invoke({ messages: [{ role: "user", content: "Take notes." }] });
const { requests } = model;
const [first] = requests;
const pairs = requests.slice(1).map(({ all }, index) => ({ before: requests[index].all, all }));
const whole = pairs.filter(({ before, all }) => all.startsWith(before)).length;
const share = pairs.map(({ before, all }) => repeated(before, all) / all.length);
const mean = share.reduce((sum, value) => sum + value, 0) / share.length;
console.log(`system prompt               ${Buffer.byteLength(first.system)} bytes`);
console.log(`tool schemas                ${Buffer.byteLength(first.schemas)} bytes`);
console.log(`requests that begin with the whole one before: ${whole} of ${pairs.length}`);
console.log(
  `share of a request that repeats the one before: mean ${(100 * mean).toFixed(1)} %, least ${(100 * Math.min(...share)).toFixed(1)} %`,
);
