// Cost of a step as a thread grows: CPU time, time of the first and last ten steps, bytes on disk per byte of payload.
// Usage: npm run build && node bench/steps/bench.mjs [part of the steps, default 1] [rounds, default 3]
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEEPAGENTS, FLOOR, OURS, inTurns } from "../support/peers.mjs";
import { SteppingModel } from "../support/stepping-model.mjs";

const part = Number(process.argv[2] ?? 1);
const rounds = Number(process.argv[3] ?? 3);

/** Makes `steps` tool calls, one per reply, and notes when each request arrives. */
async function measure(peer, { steps, call, payloadOf }) {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-steps-"));
  const database = peer.open(join(folder, "checkpoints.db"));
  const model = new SteppingModel(steps, call);
  const agent = peer.create({ model, checkpointer: peer.checkpointer(database) });
  const before = process.cpuUsage();
  await agent.invoke(
    { messages: [{ role: "user", content: "go" }] },
    { configurable: { thread_id: "t" }, recursionLimit: 10_000 },
  );
  const { user, system } = process.cpuUsage(before);
  const { values } = await agent.getState({ configurable: { thread_id: "t" } });
  database.pragma("wal_checkpoint(TRUNCATE)");
  database.close();
  const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  rmSync(folder, { recursive: true, force: true });
  const laps = model.times.slice(1).map((time, i) => time - model.times[i]);
  const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  const [first, last] = [median(laps.slice(1, 11)), median(laps.slice(-10))];
  const cpu = (user + system) / 1000 / steps;
  return { cpu, first, last, growth: last / first, megabytes: bytes / 1e6, share: bytes / payloadOf(values) };
}

const messageBytes = ({ messages }) => JSON.stringify(messages.map((message) => message.toDict())).length;
const fileBytes = ({ files }) =>
  Object.values(files).reduce((sum, { content }) => sum + [content].flat().join("\n").length, 0);
const body = `${"x".repeat(49)}\n`.repeat(1000);
const peers = [OURS, FLOOR, DEEPAGENTS];
const ls = {
  name: "ls",
  call: () => ({ name: "ls", args: { path: "/" } }),
  payloadOf: messageBytes,
  peers,
};
const cases = [
  { ...ls, steps: Math.round(100 * part) },
  { ...ls, steps: Math.round(400 * part) },
  {
    name: "20 files of 50 KB, then ls",
    steps: Math.round(200 * part),
    call: (step) =>
      step <= 20
        ? { name: "write_file", args: { file_path: `/file-${step}.txt`, content: body } }
        : { name: "ls", args: { path: "/nothing-here" } },
    payloadOf: (values) => messageBytes(values) + fileBytes(values),
    peers: [OURS, DEEPAGENTS],
  },
];
const columns = [
  "CPU a step (ms)",
  "first ten steps (ms each)",
  "last ten",
  "last / first",
  "on disk (MB)",
  "on disk / payload",
];
for (const peer of peers) await measure(peer, { ...ls, steps: 30 });
console.log(`| run | agent | CPU ours / its | ${columns.join(" | ")} |`);
console.log("|---|---|---|---|---|---|---|---|---|");
for (const run of cases) {
  const results = await inTurns(run.peers, rounds, (peer) => measure(peer, run));
  for (const [index, result] of results.entries()) {
    const cells = [results[0].cpu / result.cpu, ...Object.values(result)].map((value) => value.toFixed(2));
    console.log(`| ${run.steps} steps: ${run.name} | ${[run.peers[index].name, ...cells].join(" | ")} |`);
  }
}
