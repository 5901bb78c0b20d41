// 20,000 memories in a store on disk: list, read, write, delete one, search; against the same in a small store,
// and full-text searches against the same in plain SQL, with how long each holds up other work.
// Usage: npm run build && node bench/store/bench.mjs [memories]
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { AsyncBatchedStore } from "@langchain/langgraph-checkpoint";
import { createStore, openDatabase, StoreBackend } from "../../dist/index.js";
import { held } from "../support/hold-up.mjs";

const MEMORIES = Number(process.argv[2] ?? 20_000);
const PER_FOLDER = 20;
const ROUNDS = 30;
const NAMESPACE = ["memories", "bench"];
const median = (values) => values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)];

const folderOf = (index) => `/topic-${String(Math.floor(index / PER_FOLDER)).padStart(4, "0")}`;

/** Memories of about 1 KB; one in a hundred holds the needle. */
async function fill(root, memories) {
  const database = openDatabase(join(root, `store-${memories}.db`));
  const store = createStore(database);
  const now = new Date(0).toISOString();
  for (let first = 0; first < memories; first += 1000) {
    const operations = Array.from({ length: Math.min(1000, memories - first) }, (_, offset) => {
      const index = first + offset;
      const mark = index % 100 === 0 ? "needle" : "hay";
      const korean = index % 100 === 1 ? "배포는" : "주말에";
      const content = `# Memory ${index}\n${"The user likes short answers.\n".repeat(33)}${mark} ${korean}\n`;
      const value = { content, mimeType: "text/markdown", created_at: now, modified_at: now };
      return { namespace: NAMESPACE, key: `${folderOf(index)}/memory-${index}.md`, value };
    });
    await store.batch(operations);
  }
  // As a running graph hands it to its tools.
  const handed = new AsyncBatchedStore(store);
  return { database, store, backend: new StoreBackend({ store: handed, namespace: NAMESPACE }) };
}

const cpuTime = () => process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000;

async function timed(run, clock) {
  const start = clock();
  const result = await run();
  if (result?.error !== undefined) throw new Error(result.error);
  return clock() - start;
}

/** Both take turns, so that what else the machine does falls on both. */
async function compare(name, peer, ours, rounds = ROUNDS, clock = () => performance.now()) {
  const times = { peer: [], ours: [] };
  for (let round = 0; round < rounds; round += 1) {
    times.peer.push(await timed(() => peer(round), clock));
    times.ours.push(await timed(() => ours(round), clock));
  }
  const [peerTime, ownTime] = [median(times.peer), median(times.ours)];
  console.log(
    `| ${name} | ${peerTime.toFixed(2)} | ${ownTime.toFixed(2)} | ${(ownTime / peerTime).toFixed(2)} |`,
  );
}

const root = mkdtempSync(join(tmpdir(), "deepagent-store-"));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));
const small = await fill(root, PER_FOLDER);
const large = await fill(root, MEMORIES);
const middle = Math.floor(MEMORIES / 2);
const inSmall = `${folderOf(0)}/memory-7.md`;
const inLarge = `${folderOf(middle)}/memory-${middle + 7}.md`;
const addAndDelete = async (backend, path) => {
  const written = await backend.write(path, "new");
  return written.error === undefined ? backend.delete(path) : written;
};
console.log(`Node ${process.version}, ${process.platform}, ${cpus().length} cores, median of ${ROUNDS}\n`);
console.log(`| operation | ${PER_FOLDER} memories (ms) | ${MEMORIES} memories (ms) | ratio |`);
console.log("|---|---|---|---|");
await compare(
  `list a folder of ${PER_FOLDER}`,
  () => small.backend.ls(folderOf(0)),
  () => large.backend.ls(folderOf(middle)),
);
await compare(
  "read one",
  () => small.backend.read(inSmall),
  () => large.backend.read(inLarge),
);
await compare(
  "write one and delete it",
  (round) => addAndDelete(small.backend, `${folderOf(0)}/new-${round}.md`),
  (round) => addAndDelete(large.backend, `${folderOf(middle)}/new-${round}.md`),
);
await compare(
  `search a folder of ${PER_FOLDER}`,
  () => small.backend.grep("needle", folderOf(0)),
  () => large.backend.grep("needle", folderOf(middle)),
);
console.log(`\n| of ${MEMORIES} memories | in SQL (ms of CPU) | ours (ms of CPU) | ratio |`);
console.log("|---|---|---|---|");
const scan = large.database.prepare("SELECT key FROM store_items WHERE instr(value, 'needle') ORDER BY key");
const folders = large.database.prepare(
  "SELECT DISTINCT substr(key, 1, instr(substr(key, 2), '/') + 1) FROM store_items ORDER BY 1",
);
await compare(
  "grep, match in 1 of 100",
  () => scan.all(),
  () => large.backend.grep("needle", "/"),
  ROUNDS,
  cpuTime,
);
await compare(
  "list the root",
  () => folders.all(),
  () => large.backend.ls("/"),
  ROUNDS,
  cpuTime,
);
const [ENCODED, NUMBERS] = [
  '"memories","bench",',
  Array.from({ length: ROUNDS }, (_, at) => at * PER_FOLDER),
];
const folder = large.database.prepare(
  "SELECT key, value FROM store_items WHERE namespace = ? AND key >= ? AND key < ? ORDER BY key",
);
await compare(
  "list a folder",
  () =>
    folder.all(ENCODED, `${folderOf(middle)}/`, `${folderOf(middle)}0`).map(({ value }) => JSON.parse(value)),
  () => large.backend.ls(folderOf(middle)),
  10 * ROUNDS,
  cpuTime,
);
const remove = large.database.prepare("DELETE FROM store_items WHERE namespace = ? AND key = ?");
const pathOf = (index) => `${folderOf(index)}/memory-${index}.md`;
await compare(
  "delete one",
  (round) => void remove.run(ENCODED, pathOf(NUMBERS[round])),
  (round) => large.backend.delete(pathOf(NUMBERS[round] + 1)),
  ROUNDS,
  cpuTime,
);

console.log(
  `\n| full text of all ${MEMORIES}, best 10 | in SQL (ms) | ours (ms) | ratio | longest hold-up in SQL (ms) | in ours (ms) |`,
);
console.log("|---|---|---|---|---|---|");
const ranked = large.database.prepare(`
SELECT i.value FROM store_text JOIN store_items AS i ON i.id = store_text.rowid
WHERE store_text MATCH ? AND i.namespace >= ? AND i.namespace < ?
ORDER BY bm25(store_text, 2.0, 1.0), i.key LIMIT 10`);
const SEARCHES = [
  ["a word of all", "answers", '"answers"*'],
  ["four words of all", "user likes short answers", '"user"* OR "likes"* OR "short"* OR "answers"*'],
  ["a word of all and one of 1 in 100", "answers needle", '"answers"* OR "needle"*'],
  ["a word of 1 in 100", "needle", '"needle"*'],
  ["Korean, without its particle, of 1 in 100", "배포", "배포*"],
  ["no word, a part of 1 in 100", "eedle", undefined],
];
for (const [name, query, match] of SEARCHES) {
  const rows =
    match === undefined
      ? () => scan.all()
      : () => ranked.all(match, '"memories","bench",', '"memories","bench"-');
  await hold(name, rows, () => large.store.searchText(NAMESPACE, query, 10));
}
for (const { database } of [small, large]) database.close();

/** As `compare`, and the longest time in which nothing else could happen: the median over the rounds. */
async function hold(name, peer, ours, rounds = ROUNDS) {
  const [peers, own] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    peers.push(await held(async () => void peer()));
    own.push(await held(ours));
  }
  const of = (results, field) => median(results.map((result) => result[field]));
  const cells = [
    of(peers, "time"),
    of(own, "time"),
    of(own, "time") / of(peers, "time"),
    of(peers, "longest"),
    of(own, "longest"),
  ];
  console.log(`| ${name} | ${cells.map((cell) => cell.toFixed(2)).join(" | ")} |`);
}
