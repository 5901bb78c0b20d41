import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { encodeNamespace } from "../../../../src/storage/memories/namespaces.ts";
import { searchedText } from "../../../../src/storage/memories/text-query.ts";
import type { Database } from "../../../../src/storage/sqlite/database.ts";
import { STORE_MIGRATIONS } from "../../../../src/storage/sqlite/memories/schema.ts";
import { createStore } from "../../../../src/storage/sqlite/memories/store.ts";
import { migrate } from "../../../../src/storage/sqlite/migrations.ts";
import { attempts } from "../../../support/effort.ts";
import { opened, temporaryFolder } from "../../support.ts";

/** Version 1 stored texts of this length apart, in pieces. */
const [LONG, PIECE] = [64, 128];
const HERE = ["memories"];

/** A database of version 1, and what it was to store of a value. */
function versionOne(file?: string) {
  const database = opened(file);
  migrate(database, "store", STORE_MIGRATIONS.slice(0, 1));
  return { database, divided: (value: Record<string, unknown>) => divided(database, value) };
}

function divided(database: Database, value: Record<string, unknown>) {
  const pieces: string[] = [];
  const json = JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "string" || (part.length < LONG && !part.startsWith("deepagent-parts:"))) return part;
    const first = pieces.length;
    for (let at = 0; at < part.length; at += PIECE) pieces.push(part.slice(at, at + PIECE));
    return `deepagent-parts:${first}-${pieces.length}`;
  });
  if (pieces.length === 0) return { json, parts: null, text: null };
  const id = database.prepare("INSERT INTO store_values (unused_since) VALUES (NULL)").run().lastInsertRowid;
  const put = database.prepare("INSERT INTO store_parts (value, number, text) VALUES (?, ?, ?)");
  for (const [number, piece] of pieces.entries()) put.run(id, number, JSON.stringify(piece));
  return { json, parts: Number(id), text: searchedText(value) };
}

const INSERT = `
INSERT INTO store_items (namespace, key, value, parts, text, indexed, version, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, 1, 3, 1000, 2000)`;

const text = fc
  .record({
    unit: fc.oneof(
      fc.constantFrom("a", "é", "😀", "\ud83d", "\ude00", '"\n', '"deepagent-parts:0-1"', "\\"),
      fc.string({ minLength: 1 }),
    ),
    length: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: LONG - 2, max: 5 * PIECE })),
  })
  .map(({ unit, length }) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length));

it("pieces of long texts come back into their values, whatever the texts are", async () => {
  const lookalike = fc
    .tuple(fc.constantFrom("", '"', '\\"', ',"'), fc.nat(3), fc.nat(3), fc.constantFrom("", '"'))
    .map(([before, a, b, after]) => `${before}deepagent-parts:${a}-${b}${after}`);
  const leaf = fc.oneof({ weight: 3, arbitrary: text }, lookalike, fc.jsonValue({ maxDepth: 1 }));
  const name = fc.oneof(fc.string(), lookalike, fc.constantFrom('"deepagent-parts:0-1', "\\"));
  const value = fc.dictionary(name, fc.oneof(leaf, fc.array(leaf, { maxLength: 3 })), { maxKeys: 4 });
  await fc.assert(
    fc.asyncProperty(fc.array(value, { maxLength: 5 }), async (values) => {
      const old = versionOne();
      const insert = old.database.prepare(INSERT);
      for (const [index, one] of values.entries()) {
        const { json, parts, text: searched } = old.divided(one);
        insert.run(encodeNamespace(HERE), String(index), json, parts, searched);
      }
      const found = await createStore(old.database).search(HERE, { limit: 9 });
      expect(found.map(({ value: one }) => one)).toEqual(
        values.map((one) => JSON.parse(JSON.stringify(one))),
      );
    }),
    attempts(100),
  );
});

it("a memory of version 1 is found as before, also one that is over the limit now", async () => {
  const file = join(temporaryFolder(), "agent.db");
  const old = versionOne(file);
  const long = { content: `harbour 배포는 ${"hay ".repeat(500_000)}` };
  const { json, parts, text: searched } = old.divided(long);
  old.database.prepare(INSERT).run(encodeNamespace(HERE), "/long.md", json, parts, searched);
  old.database.exec("INSERT INTO store_grams (rowid, grams) VALUES (1, '배포 포는 는 0')");
  old.database.exec("INSERT INTO store_models (name, to_fill, used_at) VALUES ('test:model', 0, 0)");
  old.database.exec("INSERT INTO store_passages (item, model, number, vector) VALUES (1, 1, 0, x'00')");
  old.database.close();
  const database = opened(file);
  const store = createStore(database);
  const item = await store.getVersioned(HERE, "/long.md");
  expect(item).toMatchObject({ value: long, version: "1.3", createdAt: new Date(1000) });
  for (const query of ["harbour", "배포", "long"])
    expect(await store.searchText(HERE, query, 5)).toHaveLength(1);
  expect(database.prepare("SELECT count(*) FROM store_passages").pluck().get()).toBe(1);
  database.exec("INSERT INTO store_text (store_text, rank) VALUES ('integrity-check', 1)");
  await store.put(HERE, "/long.md", { content: "bridge" });
  expect(await store.searchText(HERE, "harbour", 5)).toEqual([]);
  expect(await store.searchText(HERE, "배포", 5)).toEqual([]);
  expect(await store.searchText(HERE, "bridge", 5)).toHaveLength(1);
  expect(database.prepare("SELECT count(*) FROM store_passages").pluck().get()).toBe(0);
});

it("a batch that a killed process had begun to carry out is whole, and one that it only prepared is gone", async () => {
  const { database, divided: dividedHere } = versionOne();
  const insert = database.prepare(INSERT);
  for (const key of ["a", "b", "c"]) insert.run(encodeNamespace(HERE), key, '{"content":"old"}', null, null);
  database.exec("INSERT INTO store_batches (begun_at, whole_at) VALUES (1, 5000), (2, NULL)");
  const add = database.prepare(
    "INSERT INTO store_batch_puts (batch, number, put, parts) VALUES (?, ?, ?, ?)",
  );
  const put = (batch: number, number: number, key: string, value: Record<string, unknown> | null) => {
    const {
      json,
      parts,
      text: searched,
    } = value === null ? { json: null, parts: null, text: null } : dividedHere(value);
    const facts = {
      indexed: value === null ? 0 : 1,
      grams: key === "b" ? "배포 포 0" : "",
      ttl: key === "d" ? 1e15 : null,
    };
    const whole = {
      namespace: encodeNamespace(HERE),
      key,
      json,
      parts,
      text: searched,
      ...facts,
      vectors: [],
    };
    add.run(batch, number, JSON.stringify(whole), parts);
  };
  const long = { content: `배포 ${"new ".repeat(100)}` };
  put(1, 4, "a", null);
  put(1, 5, "b", { content: "first" });
  put(1, 6, "b", long);
  put(1, 7, "d", { content: "added" });
  put(2, 0, "c", { content: "never" });
  const store = createStore(database);
  const values = Object.fromEntries((await store.search(HERE)).map(({ key, value }) => [key, value]));
  expect(values).toEqual({ b: long, c: { content: "old" }, d: { content: "added" } });
  expect(await store.getVersioned(HERE, "b")).toMatchObject({ version: "2.4", updatedAt: new Date(5000) });
  const found = async (query: string) => (await store.searchText(HERE, query, 9)).map(({ key }) => key);
  expect([await found("배포"), await found("new"), await found("old"), await found("added")]).toEqual([
    ["b"],
    ["b"],
    ["c"],
    ["d"],
  ]);
  database.exec("INSERT INTO store_text (store_text, rank) VALUES ('integrity-check', 1)");
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE name GLOB 'store_[vpb]*'")
    .pluck()
    .all();
  expect(tables).toEqual(["store_vectors", "store_passages"]);
});
