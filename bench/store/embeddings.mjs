// A search by meaning over 20,000 memories with vectors of 1536 numbers, against reading all vectors in SQL;
// how long embedding and searching hold up other work.
// Usage: node bench/store/embeddings.mjs [memories]
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { held } from "../support/hold-up.mjs";
import { loadSources } from "../../scripts/sources.mjs";

const MEMORIES = Number(process.argv[2] ?? 20_000);
const DIMS = 1536;
const ROUNDS = 9;
const NAMESPACE = ["memories", "bench"];
const median = (values) => values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)];
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

const root = mkdtempSync(join(tmpdir(), "deepagent-embeddings-"));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));
const { createStore, memoriesInSqlite, openDatabase, EmbeddingIndex, EmbeddingWorker, hybridSearch } =
  await loadSources(`
  export { openDatabase } from "./src/storage/sqlite/database.ts";
  export { EmbeddingIndex } from "./src/storage/memories/embedding-index.ts";
  export { EmbeddingWorker } from "./src/storage/memories/embedding-worker.ts";
  export { hybridSearch } from "./src/storage/memories/hybrid-search.ts";
  export { memoriesInSqlite } from "./src/storage/sqlite/memories/database.ts";
  export { createStore } from "./src/storage/sqlite/memories/store.ts";
`);
const database = openDatabase(join(root, "store.db"));
const store = createStore(database);
for (let first = 0; first < MEMORIES; first += 1000) {
  const operations = Array.from({ length: Math.min(1000, MEMORIES - first) }, (_, offset) => {
    const content = `# Memory ${first + offset}\n${"The user likes short answers.\n".repeat(33)}`;
    return { namespace: NAMESPACE, key: `/memory-${first + offset}.md`, value: { content } };
  });
  await store.batch(operations);
}
/** A service that answers at once. */
const embedder = {
  name: "bench:random",
  embed: async (texts) => texts.map(() => Array.from({ length: DIMS }, () => Math.random() - 0.5)),
};
const index = new EmbeddingIndex(memoriesInSqlite(database), embedder);
const search = hybridSearch(() => store, index);
const { signal } = new AbortController();

const embedding = await held(async () => {
  const worker = new EmbeddingWorker({ index, log: quiet, lookMs: 1 });
  while ((await index.waiting(1)) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await worker.close();
});
const passages = database.prepare("SELECT item, vector FROM store_passages");
const [inSql, near, hybrid] = [[], [], []];
for (let round = 0; round < ROUNDS; round += 1) {
  inSql.push(await held(async () => void passages.all()));
  near.push(await held(() => index.nearest(NAMESPACE, "query", 10, signal)));
  hybrid.push(await held(() => search(NAMESPACE, "answers", 10, signal)));
}
console.log(`Node ${process.version}, ${process.platform}, ${cpus().length} cores, median of ${ROUNDS}\n`);
console.log(`| ${MEMORIES} memories, ${DIMS} numbers each | ms | ratio | longest hold-up (ms) |`);
console.log("|---|---|---|---|");
const floor = median(inSql.map(({ time }) => time));
const row = (name, time, longest) =>
  console.log(`| ${name} | ${time.toFixed(1)} | ${(time / floor).toFixed(2)} | ${longest.toFixed(1)} |`);
for (const [name, results] of [
  ["read all vectors in SQL", inSql],
  ["nearest by meaning", near],
  ["words and meaning", hybrid],
]) {
  row(name, median(results.map(({ time }) => time)), median(results.map(({ longest }) => longest)));
}
row("embed all, by a service that answers at once", embedding.time, embedding.longest);
database.close();
