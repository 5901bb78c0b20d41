import { expect, test } from "vitest";
import { assertWritable } from "../../src/storage/sqlite/runs/repository.ts";
import { cleanUpWith, connect, databaseFile } from "./support.ts";
import { openConnection } from "../../src/storage/sqlite/driver.ts";

const plenty = async (): Promise<number> => 1e12;

test("a database that can be written to is fine, also while somebody else writes", async () => {
  const file = databaseFile();
  const database = connect(file);
  await assertWritable(database);
  const other = connect(file);
  other.exec("BEGIN IMMEDIATE");
  await assertWritable(database);
  other.exec("ROLLBACK");
  expect(database.inTransaction).toBe(false);
});

test("looking changes nothing that other processes would take for news", async () => {
  const file = databaseFile();
  const [database, other] = [connect(file), connect(file)];
  const version = (): unknown => other.pragma("data_version", { simple: true });
  const before = version();
  await assertWritable(database);
  expect(version()).toBe(before);
});

test("one that is read-only, closed, or on a full disk is not", async () => {
  const file = databaseFile();
  const database = connect(file);
  const reader = openConnection(file, { readonly: true });
  cleanUpWith(() => reader.close());
  await expect(assertWritable(reader, plenty)).rejects.toThrow(/readonly/);
  await expect(assertWritable(database, async () => 1000)).rejects.toThrow(/1000 bytes are free/);
  await assertWritable(database, plenty);
  database.close();
  await expect(assertWritable(database, plenty)).rejects.toThrow(/not open/);
});
