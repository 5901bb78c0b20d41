import type { Database } from "./database.ts";
import type { PackedCheckpoint } from "./packed-checkpoints.ts";
import type { NodeParts, Rewrite } from "./migration.ts";

/*
 * Threads have the sources of these functions: they use each other, and nothing else of a module. The sizes, and
 * the form of what they store, are those of the step they belong to; see `large-values.ts`.
 */

/** Stores a text under the hash of it, for a graph of a thread; gives its name. */
type Store = (text: string) => string;
/** Holds what has a key, or a place. */
type Holder = Record<string, unknown>;

/** What is damaged stays as it is, as whoever reads it is told. */
function dividedJson(json: string, store: Store): string {
  const holder: Holder = {};
  try {
    holder["value"] = JSON.parse(json);
  } catch {
    return json;
  }
  divideWithin(holder, store);
  return JSON.stringify(holder["value"]);
}

/** Puts references in the places of long texts and of snapshots with many entries. */
function divideWithin(holder: Holder, store: Store): void {
  for (const [key, part] of Object.entries(holder)) {
    if (key === "__proto__") continue;
    if (typeof part === "string") {
      if (part.length < 4096 && !part.startsWith("deepagent-blobs:")) continue;
      const names: string[] = [];
      for (let at = 0; at < part.length; at += 131_072) {
        names.push(store(JSON.stringify(part.slice(at, at + 131_072))));
      }
      holder[key] = `deepagent-blobs:text:${names.join(".")}`;
    } else if (typeof part === "object" && part !== null) divideObject(part as Holder, store); // its keys are texts
  }
}

/** What a constructor gets stays whole, but for messages, which only keep it. */
function divideObject(part: Holder, store: Store): void {
  if (part["lc"] === 2 && part["type"] === "delta_snapshot") {
    divideWithin(part, store);
    divideEntries(part, store);
  } else if (part["lc"] === 1 && part["type"] === "constructor") {
    const [, module, name] = Array.isArray(part["id"]) ? (part["id"] as unknown[]) : []; // of any kind
    if (module === "messages" && typeof name === "string" && !name.endsWith("Chunk"))
      divideWithin(part, store);
  } else if (part["lc"] !== 2) divideWithin(part, store);
}

function divideEntries(snapshot: Holder, store: Store): void {
  const { value } = snapshot;
  if (typeof value !== "object" || value === null || "lc" in value) return;
  const entries: unknown[] = Array.isArray(value) ? value : Object.entries(value);
  if (entries.length <= 32) return;
  const names: string[] = [];
  for (let at = 0; at < entries.length; at += 32)
    names.push(store(JSON.stringify(entries.slice(at, at + 32))));
  snapshot["value"] = `deepagent-blobs:${Array.isArray(value) ? "list" : "record"}:${names.join(".")}`;
}

function storeInto(database: Database, thread: string, namespace: string, { createHash }: NodeParts): Store {
  const put = database.prepare("INSERT OR IGNORE INTO checkpoint_blobs (hash, text) VALUES (?, ?)");
  const use = database.prepare(`
INSERT OR IGNORE INTO checkpoint_blob_uses (thread_id, checkpoint_ns, blob)
SELECT ?, ?, number FROM checkpoint_blobs WHERE hash = ?`);
  return (text) => {
    const hash = createHash("sha256").update(text).digest();
    put.run(hash, text);
    use.run(thread, namespace, hash);
    return hash.toString("base64url");
  };
}

function divideColumn(database: Database, table: string, column: string, node: NodeParts): void {
  const ids = database
    .prepare<[], number>(`SELECT rowid FROM ${table} WHERE type = 'json' AND length(${column}) > 1000000`)
    .pluck()
    .all();
  const read = database.prepare<[number], { thread: string; namespace: string; value: Buffer | string }>(
    `SELECT thread_id AS thread, checkpoint_ns AS namespace, ${column} AS value FROM ${table} WHERE rowid = ?`,
  );
  const write = database.prepare(`UPDATE ${table} SET ${column} = CAST(? AS BLOB) WHERE rowid = ?`);
  for (const id of ids) {
    const row = read.get(id);
    if (row === undefined) continue;
    write.run(dividedJson(row.value.toString(), storeInto(database, row.thread, row.namespace, node)), id);
  }
}

function inflated(pack: Buffer, { inflateRawSync }: NodeParts): string {
  try {
    return inflateRawSync(pack).toString();
  } catch {
    return "";
  }
}

/** A compressed one shows its size only when it is opened. */
function dividePacks(database: Database, node: NodeParts): void {
  const ids = database
    .prepare<[], number>("SELECT rowid FROM packed_checkpoints WHERE length(pack) > 4000")
    .pluck()
    .all();
  const read = database.prepare<[number], { thread: string; pack: Buffer }>(
    "SELECT thread_id AS thread, pack FROM packed_checkpoints WHERE rowid = ?",
  );
  const write = database.prepare("UPDATE packed_checkpoints SET pack = ? WHERE rowid = ?");
  for (const id of ids) {
    const row = read.get(id);
    const json = row === undefined ? "" : inflated(row.pack, node);
    if (row === undefined || json.length < 1_000_000) continue;
    const store = storeInto(database, row.thread, "", node);
    // As `packed-checkpoints.ts` writes them.
    const steps = JSON.parse(json) as Pick<PackedCheckpoint, "checkpoint" | "writes">[];
    for (const step of steps) {
      if (step.checkpoint.length > 100_000) step.checkpoint = dividedJson(step.checkpoint, store);
      for (const write of step.writes) {
        if (write[3] === "json") write[4] = dividedJson(write[4], store);
      }
    }
    write.run(node.deflateRawSync(JSON.stringify(steps)), id);
  }
}

/** Values of checkpoints that were stored whole before large parts of them were stored apart. */
export const DIVIDE_CHECKPOINTS: Rewrite = {
  rewrite: function divideCheckpoints(database: Database, node: NodeParts): void {
    divideColumn(database, "checkpoints", "checkpoint", node);
    divideColumn(database, "writes", "value", node);
    dividePacks(database, node);
  },
  uses: [
    dividedJson,
    divideWithin,
    divideObject,
    divideEntries,
    storeInto,
    divideColumn,
    inflated,
    dividePacks,
  ],
};
