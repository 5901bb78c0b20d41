import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { LocalShellBackend } from "../../src/backends/sandbox/shell-backend.ts";
import { folder, isAsleep, uniqueSleep, until } from "../backends/sandbox/support.ts";
import { foreignBackend, harness, stateBackend } from "./harness.ts";

function shell(maxOutputBytes = 100_000) {
  const backend = new LocalShellBackend({ rootDir: folder(), virtualMode: true, maxOutputBytes });
  onTestFinished(() => backend.close());
  return { backend, tools: harness(backend, { jobs: true }) };
}

type Tools = ReturnType<typeof shell>["tools"];

async function start(tools: Tools, command: string): Promise<string> {
  const text = await tools.text("execute", { command, background: true });
  const id = /^Started background job (job_[0-9a-f]{8})\n/.exec(text)?.[1];
  if (id === undefined) throw new Error(text);
  return id;
}

/** Reads a job until it has written what is expected. */
async function readUntil(tools: Tools, id: string, expected: string): Promise<string> {
  for (;;) {
    const text = await tools.text("job", { action: "read", id });
    if (text.includes(expected)) return text;
    await nextTurn();
  }
}

describe("job", () => {
  test("a job goes on while other commands run, and its output can be read meanwhile", async () => {
    const { tools } = shell();
    const seconds = uniqueSleep();
    const id = await start(tools, `echo begun; sleep ${seconds}`);
    expect(await readUntil(tools, id, "begun")).toBe(`begun\n[Job ${id} is running]`);
    expect(await tools.text("execute", { command: "echo other" })).toMatch(/^other\n/);
    expect(await tools.text("job", { action: "list" })).toBe(
      `${id}: is running: echo begun; sleep ${seconds}`,
    );
    expect(await tools.text("job", { action: "stop", id })).toBe(
      `begun\n[Job ${id} ended with exit code 143]`,
    );
    await until(() => !isAsleep(seconds));
    expect(await tools.text("job", { action: "stop", id })).toMatch(/exit code 143/);
  });

  test("a job that has ended is still there to be read", async () => {
    const { tools } = shell();
    const id = await start(tools, "echo out; echo bad >&2; exit 3");
    const text = await readUntil(tools, id, "ended");
    expect(text).toMatch(/out\n/);
    expect(text).toContain("[stderr] bad\n");
    expect(text).toMatch(/ended with exit code 3\]$/);
  });

  test("output beyond the limit is not kept, and that is said", async () => {
    const { tools } = shell(1000);
    const id = await start(tools, "yes | head -c 5000");
    expect(await readUntil(tools, id, "ended")).toMatch(/\[Later output is not kept/);
  });

  test("jobs end with the backend", async () => {
    const { backend, tools } = shell();
    const seconds = uniqueSleep();
    await start(tools, `sleep ${seconds}`);
    await until(() => isAsleep(seconds));
    await backend.close();
    await until(() => !isAsleep(seconds));
  });

  test("only so many run at once", async () => {
    const { tools } = shell();
    for (let count = 0; count < 16; count += 1) await start(tools, "sleep 1000");
    expect(await tools.text("execute", { command: "ls", background: true })).toBe(
      "Error: 16 background jobs are already running; stop one first",
    );
  });

  test("what cannot be started or found is an error", async () => {
    const { tools } = shell();
    await expect(tools.text("execute", { command: "a\0b", background: true })).rejects.toThrow("NUL");
    expect(await tools.text("execute", { command: "ls", cwd: "/none", background: true })).toBe(
      "Error: Directory '/none' not found",
    );
    expect(await tools.text("job", { action: "list" })).toBe("No background jobs");
    expect(await tools.text("job", { action: "read", id: "job_x" })).toBe(
      "Error: There is no background job 'job_x'; jobs end with the run that started them.",
    );
    expect(await tools.text("job", { action: "stop" })).toMatch(/^Error: job needs the id/);
  });

  test("a backend without jobs says so", async () => {
    const execute = () => ({ output: "", exitCode: 0, truncated: false });
    const tools = harness(foreignBackend({ id: "test", execute }), { jobs: true });
    expect(await tools.text("execute", { command: "ls", background: true })).toMatch(
      /^Error: Background jobs are not available here/,
    );
    expect(await harness(stateBackend(), { jobs: true }).text("job", { action: "list" })).toMatch(/^Error: /);
  });

  test("the preview says that the command goes on", async () => {
    const { tools } = shell();
    const { summary } = await tools.preview("execute", { command: "ls", background: true });
    expect(summary).toBe("Start a command in the background on this machine, outside any sandbox");
  });
});
