import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { temporaryFolder } from "./support.ts";

const SCRIPT = join(import.meta.dirname, "../../scripts/upgrade-prerelease.mjs");

function directoryAt(version: number): string {
  const folder = temporaryFolder();
  const database = openDatabase(join(folder, "deepagent.db"));
  createStore(database);
  database.prepare("UPDATE schema_versions SET version = ? WHERE component = 'store'").run(version);
  database.close();
  return folder;
}

it("carries over a directory of the last development version, and does nothing twice", () => {
  const folder = directoryAt(7);
  for (const said of ["store is at version 1 now", "store needs nothing"])
    expect(execFileSync(process.execPath, [SCRIPT, folder], { encoding: "utf8" })).toContain(said);
  const database = openDatabase(join(folder, "deepagent.db"));
  expect(() => createStore(database)).not.toThrow();
  database.close();
});

it("leaves one of an older version as it is, and says what to do", () => {
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, directoryAt(4)], { encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toMatch(/store is at version 4 of 7\. Start the last development version/);
});
