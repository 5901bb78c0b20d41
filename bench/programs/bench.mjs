// One task with plain calls and as a program: requests, tokens sent and received, and time, over a provider's wire.
// Usage: npm run build && node bench/programs/bench.mjs
import { setTimeout as delay } from "node:timers/promises";
import { ChatAnthropic } from "@langchain/anthropic";
import { getEncoding } from "js-tiktoken";
import { createDeepAgent } from "../../dist/index.js";

const FILES = 40;
const LINES = 60;
/** A reply takes this long, and this much more for each of its tokens: a fast model. */
const REPLY_MS = 500;
const TOKEN_MS = 10;

const encoding = getEncoding("o200k_base");
const tokensOf = (text) => encoding.encode(text).length;

/** Orders with one amount each, somewhere in a file of other lines. */
const files = Object.fromEntries(
  Array.from({ length: FILES }, (_, file) => {
    const lines = Array.from({ length: LINES }, (_, line) =>
      line === file ? `amount: ${file + 1}` : `field ${line} of order ${file}: value ${line * file}`,
    );
    return [`/orders/${file}.txt`, { content: lines.join("\n"), created_at: "", modified_at: "" }];
  }),
);
const paths = Object.keys(files);
const SUM = (FILES * (FILES + 1)) / 2;

const PROGRAM = `const paths = (await tools.glob({ pattern: "/orders/*.txt" })).split("\\n").filter((line) => line.endsWith(".txt"));
const texts = await Promise.all(paths.map((file_path) => tools.read_file({ file_path })));
return texts.reduce((sum, text) => sum + Number(/^amount: (\\d+)/m.exec(text)[1]), 0);`;

const read = (path) => ({ name: "read_file", input: { file_path: path } });
/** The replies of an ideal model: the files of each turn, then the sum. */
const inTurns = (size) => [
  [{ name: "glob", input: { pattern: "/orders/*.txt" } }],
  ...Array.from({ length: Math.ceil(FILES / size) }, (_, turn) =>
    paths.slice(turn * size, (turn + 1) * size).map(read),
  ),
];
const WAYS = [
  { name: "plain, one call in a reply", turns: inTurns(1) },
  { name: "plain, ten calls in a reply", turns: inTurns(10) },
  { name: "plain, all calls in one reply", turns: inTurns(FILES) },
  { name: "a program", turns: [[{ name: "run_program", input: { source: PROGRAM } }]], programs: true },
];

async function measure({ turns, programs = false }) {
  const used = { requests: 0, sent: 0, received: 0, first: 0 };
  let shown = "";
  const fetch = async (_url, { body }) => {
    const { tools, system, messages } = JSON.parse(body);
    const calls = turns[used.requests];
    used.requests += 1;
    const tokens = tokensOf(JSON.stringify([tools, system, messages]));
    used.sent += tokens;
    used.first ||= tokens;
    shown = JSON.stringify(messages.at(-1).content);
    const content = calls
      ? calls.map((call, index) => ({ type: "tool_use", id: `call_${used.requests}_${index}`, ...call }))
      : [{ type: "text", text: `The sum is ${SUM}.` }];
    const written = tokensOf(JSON.stringify(calls ?? content[0].text));
    used.received += written;
    await delay(REPLY_MS + written * TOKEN_MS);
    const answer = {
      id: `msg_${used.requests}`,
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5",
      stop_reason: calls ? "tool_use" : "end_turn",
      usage: { input_tokens: 10, output_tokens: written },
      content,
    };
    return new Response(JSON.stringify(answer), { headers: { "content-type": "application/json" } });
  };
  const agent = createDeepAgent({
    model: new ChatAnthropic({ model: "claude-sonnet-4-5", apiKey: "none", clientOptions: { fetch } }),
    programs,
    generalPurpose: false,
  });
  const begun = performance.now();
  const input = {
    messages: [{ role: "user", content: "Sum up the amounts of all orders in /orders." }],
    files,
  };
  await agent.invoke(input, { recursionLimit: 1000 });
  // What the model read last must let it answer.
  const isKnown = programs ? shown.includes(String(SUM)) : shown.includes("amount: 40");
  if (!isKnown) throw new Error(`the task was not done: ${shown.slice(0, 500)}`);
  return { ...used, seconds: (performance.now() - begun) / 1000 };
}

console.log(`${FILES} files of ${LINES} lines, Node ${process.version}, ${process.platform}`);
console.log("\n| way | requests | tokens sent | tokens received | seconds | sent, ratio | time, ratio |");
console.log("|---|---|---|---|---|---|---|");
const rows = [];
for (const way of WAYS) rows.push({ ...way, ...(await measure(way)) });
const { sent: leastSent, seconds: leastSeconds } = rows.at(-1);
for (const { name, requests, sent, received, seconds } of rows) {
  const ratios = [(sent / leastSent).toFixed(1), (seconds / leastSeconds).toFixed(1)];
  console.log(`| ${[name, requests, sent, received, seconds.toFixed(1), ...ratios].join(" | ")} |`);
}
console.log(`\nThe tool itself takes ${rows.at(-1).first - rows[0].first} tokens of each request.`);
