import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { expect, test } from "vitest";
import { openConnection } from "../../src/storage/sqlite/driver.ts";
import { BIN } from "../commands/built-bin.ts";
import { nodeWithSqlite } from "../support/node-with-sqlite.ts";
import { probe } from "./sqlite-probe.ts";
import { filesIn } from "../support/files-in.ts";

/** What is told of a run: its status and its answer. */
const shown = (program: string[], data: string): string[] => {
  const [command, ...rest] = [...program, BIN, "runs", "list", "--data-dir", data];
  return execFileSync(command, rest, { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes("completed"));
};

test("both drivers do all of a run's work, on the same files", { tags: ["node22"] }, () => {
  const [workspace, data] = [filesIn(), filesIn()];
  const newer = [nodeWithSqlite() ?? ""];
  const settings = ["--model", "offline", "--workspace", workspace, "--data-dir", data];
  const run = (program: string[], ...args: string[]) => {
    const [command = "", ...rest] = [...program, BIN, ...args, ...settings];
    const { status, stdout, stderr } = spawnSync(command, rest, { encoding: "utf8" });
    expect({ status, stderr }).toMatchObject({ status: 0 });
    return { stdout, stderr };
  };
  expect(run(newer, "doctor").stdout).toMatch(/SQLite [\d.]+ \(node:sqlite\)/);
  const first = run(newer, "run", "examine the folder", "--yes");
  expect(first.stdout).toContain("offline model");
  // Node says that its SQLite is experimental; what a program logs is read by others.
  expect(first.stderr).not.toContain("ExperimentalWarning");
  const second = run([process.execPath], "run", "examine it again", "--yes");
  expect(second.stdout).toContain("offline model");
  expect(shown([process.execPath], data)).toHaveLength(2);
  expect(shown(newer, data)).toEqual(shown([process.execPath], data));
});

test("it does and refuses what better-sqlite3 does, in the same words", { tags: ["node22"] }, () => {
  const out = join(filesIn(), "probe.mjs");
  buildSync({
    stdin: {
      contents: `
        import { openNodeDatabase } from "../../src/storage/sqlite/node-driver.ts";
        import { probe } from "./sqlite-probe.ts";
        console.log(JSON.stringify(probe(openNodeDatabase, process.argv[2])));`,
      resolveDir: import.meta.dirname,
      loader: "ts",
    },
    bundle: true,
    platform: "node",
    format: "esm",
    outfile: out,
  });
  const ofNode = execFileSync(nodeWithSqlite() ?? "", [out, filesIn()], { encoding: "utf8" });
  expect(JSON.parse(ofNode)).toEqual(JSON.parse(JSON.stringify(probe(openConnection, filesIn()))));
});
