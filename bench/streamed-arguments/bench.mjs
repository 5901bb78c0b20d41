// Long arguments of a call, streamed in small pieces: seconds until the call is there, and the longest turn of
// the event loop. The floor reads the same stream and parses each event once.
// Usage: node bench/streamed-arguments/bench.mjs [largest size in bytes]
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { held } from "../support/hold-up.mjs";
import { loadSources } from "../../scripts/sources.mjs";

const PIECE = 24;
const TIMES = 2;
const MODELS = [
  ["anthropic", "anthropic:claude-sonnet-4-5-20250929", "/v1/messages"],
  ["openai", "openai:gpt-4.1", "/v1/chat/completions"],
  ["openai", "openai:gpt-5.3-codex", "/v1/responses"],
];
const contentOf = (size) => "0123456789abcde\n".repeat(size / 16);
const tool = {
  type: "function",
  function: {
    name: "write_file",
    description: "Writes a file.",
    parameters: { type: "object", properties: { content: { type: "string" } } },
  },
};

/** The provider, in a process of its own: the last message says how long the content is. */
async function serve() {
  const { startWireServer } = await loadSources(
    `export { startWireServer } from "./test/support/wire-server.ts";`,
  );
  const server = await startWireServer(({ messages }) => ({
    toolCalls: [{ name: "write_file", args: { content: contentOf(Number(messages.at(-1).text)) } }],
    pieceLength: PIECE,
  }));
  process.send({ anthropic: server.env("anthropic"), openai: server.env("openai"), url: server.url });
}

async function measure() {
  const { joinStreams, resolveModel } = await loadSources(`
    export { joinStreams } from "./src/agent/models/joined-stream.ts";
    export { resolveModel } from "./src/agent/models/resolve.ts";`);
  const provider = fork(fileURLToPath(import.meta.url), ["serve"]);
  const [told] = await once(provider, "message");
  const sent = [];
  const { fetch } = globalThis;
  globalThis.fetch = (url, init) => {
    sent.push([url, init]);
    return fetch(url, init);
  };
  const sizes = [200_000, 1_000_000, 5_000_000].filter((size) => size <= Number(process.argv[2] ?? Infinity));
  console.log(
    "| protocol | size (MB) | floor (s) | ours (s) | ratio | longest turn: floor (ms) | ours (ms) |",
  );
  console.log("|---|---|---|---|---|---|---|");
  for (const [name, spec, path] of MODELS) {
    const { model } = await resolveModel({ model: spec, env: told[name] });
    // No limit: the agent cuts at 768 kB.
    const withTool = joinStreams(model.bindTools([tool]), Infinity);
    const ask = async (size) => {
      const { tool_calls: calls } = await withTool.invoke(String(size));
      if (calls[0]?.args.content !== contentOf(size)) throw new Error(`${path}: other arguments came`);
    };
    const read = async () => {
      const [url, { signal: _signal, ...init }] = sent.at(-1);
      const response = await fetch(url, init);
      const decoder = new TextDecoder();
      let rest = "";
      for await (const piece of response.body) {
        const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line.startsWith("data: {")) JSON.parse(line.slice(6));
      }
    };
    await ask(20_000);
    // Its last events repeat the arguments, and events that bring more than 2 MB at once are refused.
    const isRepeated = path === "/v1/responses";
    for (const size of sizes.filter((size) => !isRepeated || size < 2_000_000)) {
      const ours = [];
      const floors = [];
      for (let i = 0; i < TIMES; i += 1) {
        ours.push(await held(() => ask(size)));
        floors.push(await held(read));
      }
      const [own, floor] = [ours, floors].map((all) => ({
        time: Math.min(...all.map(({ time }) => time)) / 1000,
        longest: Math.min(...all.map(({ longest }) => longest)),
      }));
      console.log(
        `| ${path} | ${size / 1e6} | ${floor.time.toFixed(2)} | ${own.time.toFixed(2)} | ${(own.time / floor.time).toFixed(2)} | ${floor.longest.toFixed(0)} | ${own.longest.toFixed(0)} |`,
      );
    }
  }
  provider.kill();
}

await (process.argv[2] === "serve" ? serve() : measure());
