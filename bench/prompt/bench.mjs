// Size of what every request carries, and how much of a request repeats the one before, in the bytes a
// provider gets. Usage: npm run build && node bench/prompt/bench.mjs
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";
import { createDeepAgent } from "../../dist/index.js";
import { DEEPAGENTS, OURS } from "../support/peers.mjs";

/** With the parts of the prompt that an agent has only where its caller asks for them. */
const EVERYTHING = {
  name: "deepagent-mcp, everything on",
  create: ({ model }) =>
    createDeepAgent({
      model,
      askUser: true,
      web: { mode: "allow", search: async () => [] },
      memory: ["/AGENTS.md"],
      interruptOn: {},
    }),
};

const TURNS = 30;

/** Writes and lists files in turn, two calls a reply. */
function callsOf(turn) {
  const path = `/notes/${Math.floor(turn / 2)}`;
  return [0, 1].map((index) => ({
    id: `call_${turn}_${index}`,
    ...(turn % 2 === 0
      ? {
          name: "write_file",
          input: { file_path: `${path}-${index}.md`, content: `note ${turn}\n`.repeat(40) },
        }
      : { name: "ls", input: { path: "/" } }),
  }));
}

const PROVIDERS = {
  Anthropic: {
    model: (fetch) =>
      new ChatAnthropic({ model: "claude-sonnet-4-5", apiKey: "none", clientOptions: { fetch } }),
    reply: (turn) => ({
      id: `msg_${turn}`,
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5",
      stop_reason: turn < TURNS ? "tool_use" : "end_turn",
      usage: { input_tokens: 10, output_tokens: 5 },
      content:
        turn < TURNS
          ? callsOf(turn).map((call) => ({ type: "tool_use", ...call }))
          : [{ type: "text", text: "done" }],
    }),
    // In the order in which the provider caches them.
    parts: ({ tools, system, messages }) => ({ tools, system, messages }),
  },
  OpenAI: {
    model: (fetch) => new ChatOpenAI({ model: "gpt-4.1", apiKey: "none", configuration: { fetch } }),
    reply: (turn) => ({
      id: `chatcmpl-${turn}`,
      object: "chat.completion",
      model: "gpt-4.1",
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      choices: [
        {
          index: 0,
          finish_reason: turn < TURNS ? "tool_calls" : "stop",
          message: {
            role: "assistant",
            content: turn < TURNS ? null : "done",
            ...(turn < TURNS
              ? {
                  tool_calls: callsOf(turn).map(({ id, name, input }) => ({
                    id,
                    type: "function",
                    function: { name, arguments: JSON.stringify(input) },
                  })),
                }
              : {}),
          },
        },
      ],
    }),
    parts: ({ tools, messages }) => ({
      tools,
      system: messages.find(({ role }) => role === "system" || role === "developer")?.content,
      messages: messages.filter(({ role }) => role !== "system" && role !== "developer"),
    }),
  },
};

/** The requests of one conversation, without marks for the cache, which move and are no part of its key. */
async function requestsOf(peer, { model, reply, parts }) {
  const requests = [];
  const fetch = async (_url, { body }) => {
    const request = JSON.parse(body, (key, value) => (key === "cache_control" ? undefined : value));
    const { tools, system, messages } = parts(request);
    const [schemas, prompt] = [JSON.stringify(tools), system === undefined ? "" : JSON.stringify(system)];
    requests.push({
      schemas,
      prompt,
      all: schemas + prompt + messages.map((m) => JSON.stringify(m)).join("\n"),
    });
    const answer = JSON.stringify(reply(requests.length));
    return new Response(answer, { headers: { "content-type": "application/json" } });
  };
  const agent = peer.create({ model: model(fetch) });
  const options = { recursionLimit: 1000, configurable: { thread_id: "1" } };
  await agent.invoke({ messages: [{ role: "user", content: "Take notes." }] }, options);
  return requests;
}

function repeated(before, after) {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at += 1;
  return at;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
console.log(
  "| provider | agent | system prompt (bytes) | tool schemas (bytes) | requests that begin with all of the one before | repeated: mean | least |",
);
console.log("|---|---|---|---|---|---|---|");
for (const [name, provider] of Object.entries(PROVIDERS)) {
  const sizes = [];
  for (const peer of [OURS, EVERYTHING, DEEPAGENTS]) {
    const requests = await requestsOf(peer, provider);
    const [first] = requests;
    const [prompt, schemas] = [Buffer.byteLength(first.prompt), Buffer.byteLength(first.schemas)];
    sizes.push(prompt + schemas);
    const pairs = requests.slice(1).map(({ all }, index) => ({ before: requests[index].all, all }));
    const whole = pairs.filter(({ before, all }) => all.startsWith(before)).length;
    const shares = pairs.map(({ before, all }) => repeated(before, all) / all.length);
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    const cells = [
      prompt,
      schemas,
      `${whole} of ${pairs.length}`,
      percent(mean),
      percent(Math.min(...shares)),
    ];
    console.log(`| ${[name, peer.name, ...cells].join(" | ")} |`);
  }
  const [plain, everything] = sizes.map((size) => (size / sizes[2]).toFixed(3));
  console.log(`| ${name} | ratio | ${plain} of both, ${everything} with everything on | | | | |`);
}
