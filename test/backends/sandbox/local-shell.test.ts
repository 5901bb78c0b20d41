import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { LocalShellBackend, type LocalShellOptions } from "../../../src/backends/sandbox/shell-backend.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { folder, isAsleep, uniqueSleep, until } from "./support.ts";

const HOUR = 3_600_000;

function open(options: LocalShellOptions = {}): LocalShellBackend & { root: string } {
  const root = folder();
  const backend = new LocalShellBackend({ rootDir: root, virtualMode: true, ...options });
  onTestFinished(() => backend.close());
  return Object.assign(backend, { root });
}

describe("LocalShellBackend", () => {
  it("runs commands in its folder, beside the file tools", async () => {
    const shell = open();
    await shell.write("/src/a.txt", "text\n");
    expect(await shell.execute("cat src/a.txt; pwd")).toEqual({
      output: `text\n${shell.root}\n`,
      exitCode: 0,
      truncated: false,
    });
    await shell.execute("echo made > b.txt");
    expect((await shell.read("/b.txt")).content).toBe("made\n");
    expect(shell.capabilities).toMatchObject({ executeOptions: true, isolation: "none", paths: "virtual" });
    expect(shell.id).toMatch(/^local-[0-9a-f]{16}$/);
  });

  it("makes a missing folder with the first command", async () => {
    const rootDir = join(folder(), "not", "yet");
    expect(await open({ rootDir }).execute("pwd")).toMatchObject({ output: `${rootDir}\n`, exitCode: 0 });
  });

  it("tells exit codes, those of signals as shells do", async () => {
    const shell = open();
    expect(await shell.execute("echo no >&2; exit 3")).toMatchObject({
      output: "[stderr] no\n",
      exitCode: 3,
    });
    expect((await shell.execute("kill -9 $$")).exitCode).toBe(137);
    expect((await shell.execute("no-such-program")).exitCode).toBe(127);
  });

  it("starts in the directory that is asked for", async () => {
    const shell = open();
    mkdirSync(join(shell.root, "a b"));
    writeFileSync(join(shell.root, "file"), "");
    expect((await shell.execute("pwd", { cwd: "/a b" })).output).toBe(`${shell.root}/a b\n`);
    expect(await shell.execute("pwd", { cwd: "/none" })).toEqual({
      output: "Error: Directory '/none' not found",
      exitCode: 1,
      truncated: false,
    });
    expect((await shell.execute("pwd", { cwd: "/file" })).output).toBe("Error: '/file' is not a directory");
    expect((await shell.execute("pwd", { cwd: "/../x" })).exitCode).toBe(1);
  });

  it("takes real paths in the form with real paths", async () => {
    const shell = open({ virtualMode: false });
    mkdirSync(join(shell.root, "sub"));
    expect((await shell.execute("pwd", { cwd: "sub" })).output).toBe(`${shell.root}/sub\n`);
    expect((await shell.execute("pwd", { cwd: `${shell.root}/sub` })).output).toBe(`${shell.root}/sub\n`);
  });

  it("gives commands no input", async () => {
    expect(await open().execute("cat; read x || echo none")).toMatchObject({ output: "none\n", exitCode: 0 });
  });

  it("refuses what is no command", async () => {
    const shell = open();
    expect((await shell.execute(" ")).output).toBe("Error: Command must be a non-empty string.");
    expect((await shell.execute("a\0b")).output).toBe("Error: Command contains a NUL character.");
    const long = await shell.execute(`: ${"x".repeat(3_000_000)}`);
    expect(long.output).toMatch(/^Error: The command could not be started: /);
    expect(long.exitCode).toBe(127);
  });

  it("ends the whole group at the time limit and keeps what was written", async () => {
    const shell = open();
    const seconds = uniqueSleep();
    const time = handSetTime();
    const result = await shell.execute(`echo begun; (sleep ${seconds}; echo never) & sleep ${seconds}`, {
      timeout: 3600,
      onOutput: () => time.pass(HOUR),
    });
    expect(result).toEqual({
      output: "begun\nError: Command timed out after 3600 seconds.",
      exitCode: 124,
      truncated: false,
      timedOut: true,
    });
    await until(() => !isAsleep(seconds));
  });

  it("answers at the time limit even when a descendant holds the output and ignores the request to end", async () => {
    const shell = open({ timeout: 3600 });
    const seconds = uniqueSleep();
    const time = handSetTime();
    const command = `trap '' TERM; echo begun; sleep ${seconds}; sleep ${seconds}`;
    const result = await shell.execute(command, { onOutput: () => time.pass(HOUR) });
    expect(result).toMatchObject({ exitCode: 124, timedOut: true });
    // The first sleep ends on request, the shell and its second one only when they are killed.
    await until(() => !isAsleep(seconds));
  });

  it("ends what has left the group of its command, at the time limit and when it is closed", async () => {
    const shell = open();
    const [first, second] = [uniqueSleep(), uniqueSleep()];
    const time = handSetTime();
    const over = shell.execute(`setsid sleep ${first} & sleep ${first}`, { timeout: 3600 });
    await until(() => isAsleep(first, 2));
    time.pass(HOUR);
    expect(await over).toMatchObject({ timedOut: true });
    await until(() => !isAsleep(first));
    await shell.execute(`setsid sleep ${second} & echo done`);
    await until(() => isAsleep(second));
    await shell.close();
    await until(() => !isAsleep(second));
  });

  it("ends a command whose call was aborted", async () => {
    const shell = open();
    const seconds = uniqueSleep();
    const controller = new AbortController();
    const result = await shell.execute(`echo begun; sleep ${seconds}`, {
      signal: controller.signal,
      onOutput: () => controller.abort(),
    });
    expect(result).toEqual({ output: "begun\n", exitCode: null, truncated: false });
    await until(() => !isAsleep(seconds));
    expect((await shell.execute("echo x", { signal: AbortSignal.abort() })).exitCode).toBeNull();
  });

  it("does not wait for what a command leaves in the background, and ends that when it is closed", async () => {
    const shell = open();
    const seconds = uniqueSleep();
    const result = await shell.execute(`sleep ${seconds} & echo done`);
    expect(result).toMatchObject({ output: "done\n", exitCode: 0 });
    // The shell may have ended before the other process has become what it was started as.
    await until(() => isAsleep(seconds));
    await shell.close();
    await until(() => !isAsleep(seconds));
  });

  it("reads everything a command wrote before it ended", async () => {
    const shell = open({ maxOutputBytes: 2_000_000 });
    const { output } = await shell.execute("head -c 1000000 /dev/zero | tr '\\0' x; sleep 1000 &");
    expect(output).toBe("x".repeat(1_000_000));
  });

  it("holds a bounded part of endless output", async () => {
    const shell = open({ maxOutputBytes: 1000 });
    const result = await shell.execute("yes | tr -d '\\n' | head -c 50000000");
    expect(result).toMatchObject({ exitCode: 0, truncated: true });
    expect(result.output).toBe(`${"y".repeat(1000)}\n... Output truncated at 1000 bytes.`);
  });

  it("gives commands a plain environment, or the server's without its secrets", async () => {
    process.env["SANDBOX_TEST_PLAIN"] = "plain";
    process.env["SANDBOX_TEST_API_KEY"] = "secret";
    onTestFinished(() => {
      delete process.env["SANDBOX_TEST_PLAIN"];
      delete process.env["SANDBOX_TEST_API_KEY"];
    });
    const env = { ADDED: "yes" };
    const print = 'printenv SANDBOX_TEST_PLAIN SANDBOX_TEST_API_KEY ADDED EXTRA; test -n "$PATH"';
    const call = { env: { EXTRA: "too" } };
    expect(await open({ env }).execute(print, call)).toMatchObject({ output: "yes\ntoo\n", exitCode: 0 });
    const inherit = await open({ env, inheritEnv: true }).execute(print, call);
    expect(inherit.output).toBe("plain\nyes\ntoo\n");
    const chosen = await open({ inheritEnv: true, secretNames: ["*_PLAIN"] }).execute(print);
    expect(chosen.output).toBe("secret\n");
  });

  it("runs commands side by side", async () => {
    const shell = open();
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => shell.execute(`echo ${index} > ${index}.txt; echo ${index}`)),
    );
    expect(results.map(({ output }) => output)).toEqual(results.map((_, index) => `${index}\n`));
    expect(readFileSync(join(shell.root, "19.txt"), "utf8")).toBe("19\n");
  });
});
