import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { BIN, cleanEnv } from "./built-bin.ts";

/** Runs lines of a shell, in which `$BIN` is the program and `$DIR` a folder. */
function shell(lines: string, env: NodeJS.ProcessEnv = cleanEnv(), uid?: number) {
  const variables = { ...env, BIN, NODE: process.execPath, DIR: join(filesIn(), "work") };
  const made = `mkdir "$DIR"; cd "$DIR"; rmdir "$DIR"; ${lines}`;
  const { status, stdout, stderr } = spawnSync("/bin/sh", ["-c", made], {
    encoding: "utf8",
    env: variables,
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  return { status, stdout, stderr };
}

test.each(["", "--workspace ."])("a folder that was deleted since is said to be missing: %s", (flags) => {
  const { status, stderr } = shell(`"$NODE" "$BIN" run --model offline ${flags} task`);
  expect(stderr).toMatch(/workspace: \/\S+\/work does not exist or cannot be opened/);
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(status).toBe(2);
});

test("a folder that was deleted and made again is used", () => {
  const line = '"$NODE" "$BIN" runs list --data-dir data';
  expect(shell(`mkdir "$DIR"; ${line}`)).toMatchObject({ status: 0, stderr: "" });
});

test("a user whom the system does not know needs no home folder", () => {
  const { status, stderr } = shell(
    '"$NODE" "$BIN" run --model offline --workspace /etc/hosts task',
    { PATH: process.env["PATH"] },
    stranger(),
  );
  expect(stderr).toMatch(/workspace: \/etc\/hosts/);
  expect(status).toBe(2);
});

/** A user without a name, where these tests may start the program as another one. */
function stranger(): number | undefined {
  const uid = 54_321;
  const options = { uid, gid: uid, env: { HOME: "/" } };
  const isPossible =
    process.getuid?.() === 0 && spawnSync(process.execPath, [BIN, "--version"], options).status === 0;
  return isPossible ? uid : undefined;
}

test.each<[string, Buffer]>([
  ["UTF-16", Buffer.from("\uFEFFlist every ünit", "utf16le")],
  ["a byte order mark", Buffer.from("\uFEFFlist every ünit")],
  ["Windows-1252", Buffer.from("list every ünit", "latin1")],
])("a task in %s is read from standard input", (_, input) => {
  const folder = filesIn();
  const args = [
    "run",
    "-",
    "--model",
    "offline",
    "--workspace",
    folder,
    "--data-dir",
    `${folder}/data`,
    "--json",
  ];
  const { stdout } = spawnSync(process.execPath, [BIN, ...args], {
    input,
    env: cleanEnv(),
    encoding: "utf8",
  });
  expect(stdout).toContain('"task":"list every ünit"');
});

test("a task that is too long is said to be", () => {
  const input = "a".repeat(500_000);
  const { status, stderr } = spawnSync(process.execPath, [BIN, "run", "-"], {
    input,
    env: cleanEnv(),
    encoding: "utf8",
  });
  expect([status, stderr]).toEqual([2, expect.stringContaining("The task has more than 100000 characters.")]);
});
