import { spawn } from "node:child_process";
import { readFileSync, readdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { silentLogger } from "../../../src/core/logger.ts";
import { openDatabase } from "../../../src/storage/sqlite/database.ts";
import { openSqlite } from "../../../src/storage/sqlite/storage.ts";
import { filesIn } from "../../support/files-in.ts";
import { BIN, INITIALIZE, cleanEnv, runBin } from "../built-bin.ts";
import { terminalHome } from "../terminal-home.ts";

/** A data folder with the files of this version. */
async function dataFolder(): Promise<string> {
  const folder = filesIn();
  await (await openSqlite(folder, silentLogger)).close();
  return folder;
}

const SPOILED: [name: string, spoil: (folder: string) => void, sentence: RegExp][] = [
  [
    "the database is another file",
    (folder) => writeFileSync(join(folder, "deepagent.db"), "no database ".repeat(500)),
    /deepagent\.db is not a SQLite database\. It was left untouched/,
  ],
  [
    "the database is of a newer version",
    (folder) => change(join(folder, "deepagent.db"), "UPDATE schema_versions SET version = version + 100"),
    /deepagent\.db was written by a newer version of this program/,
  ],
  [
    "the conversations are of a newer version",
    (folder) => change(join(folder, "checkpoints.db"), "UPDATE schema_versions SET version = version + 100"),
    /checkpoints\.db was written by a newer version of this program/,
  ],
  [
    "the database is cut off",
    (folder) => truncateSync(join(folder, "deepagent.db"), 10_000),
    /deepagent\.db is damaged/,
  ],
  [
    "the data cannot be converted",
    (folder) =>
      change(join(folder, "deepagent.db"), "UPDATE schema_versions SET version = 2 WHERE component = 'runs'"),
    /deepagent\.db could not be brought to version 3 of runs/,
  ],
];

test.each(SPOILED)(
  "doctor, run and serve say that %s",
  { tags: ["long"] },
  async (_name, spoil, sentence) => {
    const folder = await dataFolder();
    spoil(folder);
    const before = readFileSync(join(folder, "deepagent.db"));
    const { workspace, env } = terminalHome();
    const flags = ["--workspace", workspace, "--data-dir", folder, "--model", "offline"];
    const doctor = await runBin(["doctor", "--offline", ...flags], { env });
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toMatch(sentence);
    const run = await runBin(["run", "List every TODO", "--yes", ...flags], { env });
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(sentence);
    const stdout = await answerOfServer(flags, env);
    expect(stdout).toMatch(sentence);
    expect(stdout).not.toContain(folder);
    expect(readFileSync(join(folder, "deepagent.db"))).toEqual(before);
  },
);

test("doctor finds nothing wrong with a good data folder, and leaves nothing in it", async () => {
  const folder = await dataFolder();
  const { workspace, env } = terminalHome();
  const flags = ["--workspace", workspace, "--data-dir", folder, "--model", "offline"];
  const own = (names: string[]) => names.filter((name) => !/-(wal|shm)$/.test(name)).sort();
  const before = own(readdirSync(folder));
  const { code, stdout } = await runBin(["doctor", "--offline", ...flags], { env });
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/Data folder .*\n.*[\d.]+ GB free/),
  });
  expect(own(readdirSync(folder))).toEqual(before);
});

/** The line with which a server answers `run_deep_agent`. */
async function answerOfServer(flags: readonly string[], env: Record<string, string>): Promise<string> {
  const call = { name: "run_deep_agent", arguments: { task: "List every TODO" } };
  const child = spawn(process.execPath, [BIN, "serve", ...flags], { env: { ...cleanEnv(), ...env } });
  child.stdin.write(
    `${INITIALIZE}${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: call })}\n`,
  );
  try {
    for await (const line of createInterface({ input: child.stdout }))
      if (line.includes('"id":2')) return line;
    throw new Error("The server ended without an answer.");
  } finally {
    child.kill("SIGKILL");
  }
}

function change(file: string, sql: string): void {
  const database = openDatabase(file);
  database.exec(sql);
  database.close();
}
