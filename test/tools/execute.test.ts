import { describe, expect, test } from "vitest";
import type { ExecuteOptions, ExecuteResponse } from "../../src/backends/executor.ts";
import { canExecute } from "../../src/tools/execute.ts";
import { parseArguments } from "../../src/tools/call.ts";
import { foreignBackend, harness, stateBackend } from "./harness.ts";

const DONE: ExecuteResponse = { output: "", exitCode: 0, truncated: false };

function shell(answer: Partial<ExecuteResponse>) {
  const asked: { command: string; options: ExecuteOptions }[] = [];
  const backend = foreignBackend({
    id: "test",
    execute: (command, options = {}) => {
      asked.push({ command, options });
      return { ...DONE, ...answer };
    },
  });
  return { asked, tools: harness(backend) };
}

describe("execute", () => {
  test.each<[Partial<ExecuteResponse>, string]>([
    [{ output: "a\nb\n" }, "a\nb\n[Command succeeded with exit code 0]"],
    [{ output: "a" }, "a\n[Command succeeded with exit code 0]"],
    [{ output: "a\n\n" }, "a\n\n[Command succeeded with exit code 0]"],
    [{ output: "" }, "<no output>\n[Command succeeded with exit code 0]"],
    [{ output: "oh", exitCode: 2 }, "oh\n[Command failed with exit code 2]"],
    [{ output: "oh", exitCode: null }, "oh\n[Command ended without an exit code]"],
    [
      { output: "much", truncated: true },
      "much\n[Command succeeded with exit code 0]\n[Output was truncated due to size limits]",
    ],
    [{ output: "half\ud83d" }, "half\ufffd\n[Command succeeded with exit code 0]"],
  ])("%j", async (answer, text) => {
    const { content, status = "success" } = await shell(answer).tools.call("execute", { command: "x" });
    expect(content).toBe(text);
    expect(status).toBe("success");
  });

  test("a command that no shell could take is refused with a way to run it", async () => {
    const { asked, tools } = shell({});
    await expect(tools.text("execute", { command: "\u200b".repeat(1_000_000) })).rejects.toThrow(
      "Invalid arguments for execute: command: Longer than 100000 characters: write a script with write_file",
    );
    expect(asked).toEqual([]);
  });

  test("a timeout gives the output so far and exit code 124", async () => {
    const timedOut = { output: "so far\n", exitCode: null, timedOut: true };
    expect(await shell(timedOut).tools.call("execute", { command: "sleep 9", timeout: 1.5 })).toEqual({
      content: "so far\nError: Command timed out after 1.5 seconds.\n[Command failed with exit code 124]",
      artifact: { exitCode: 124, truncated: false, timedOut: true },
    });
  });

  test("a timeout that is the backend's own is stated once", async () => {
    const output = "so far\nError: Command timed out after 120 seconds.";
    const { tools } = shell({ output, exitCode: 124, timedOut: true });
    expect(await tools.text("execute", { command: "sleep 999" })).toBe(
      `${output}\n[Command failed with exit code 124]`,
    );
    const silent = shell({ output: "", exitCode: null, timedOut: true });
    expect(await silent.tools.text("execute", { command: "sleep 999" })).toBe(
      "<no output>\nError: Command timed out.\n[Command failed with exit code 124]",
    );
  });

  test("the command goes to the backend as written, the directory validated", async () => {
    const { asked, tools } = shell({});
    await tools.call("execute", { command: "echo '$HOME' \\\n;", timeout: 5, cwd: "workspace//src/" });
    await tools.call("execute", { command: "ls" });
    const kept = { signal: expect.any(AbortSignal), keepBytes: 10 * 1024 * 1024 };
    expect(asked).toEqual([
      {
        command: "echo '$HOME' \\\n;",
        options: { ...kept, timeout: 5, cwd: "/workspace/src" },
      },
      { command: "ls", options: kept },
    ]);
  });

  test.each([
    [{ command: "" }, "Command must be a non-empty string."],
    [{ command: " \n" }, "Command must be a non-empty string."],
  ])("%j is not valid", (args, text) => {
    const { tools } = shell({});
    expect(parseArguments(tools.tool("execute"), args)).toMatchObject({
      ok: false,
      message: expect.stringContaining(text),
    });
  });

  test.each([[{ command: "ls", cwd: "../x" }, "Path traversal not allowed: ../x"]])(
    "%j fails before anything runs",
    async (args, text) => {
      const { asked, tools } = shell({});
      expect(await tools.call("execute", args)).toMatchObject({ content: `Error: ${text}`, status: "error" });
      expect(asked).toEqual([]);
    },
  );

  test("a backend that cannot run commands", async () => {
    const backend = stateBackend();
    expect(canExecute(backend)).toBe(false);
    expect(canExecute(shell({}).tools.backend)).toBe(true);
    expect(await harness(backend).call("execute", { command: "ls" })).toEqual({
      content: "Error: Execution not available. The configured backend cannot run commands.",
      status: "error",
      artifact: { code: "unsupported" },
    });
  });

  test("the preview is the command, with what does not print escaped", async () => {
    const { tools } = shell({});
    expect(await tools.preview("execute", { command: "echo a\n\techo \u001b[8m\u202eb" })).toEqual({
      kind: "command",
      summary: "Run a command",
      detail: "echo a\n\techo \\u001b[8m\\u202eb",
    });
    expect((await tools.preview("execute", { command: "ls", cwd: "/a\nb" })).summary).toBe(
      "Run a command in /a\\nb",
    );
  });

  test("an abort while the command runs", async () => {
    const controller = new AbortController();
    const backend = foreignBackend({
      id: "test",
      execute: async () => {
        controller.abort();
        return { ...DONE, output: "partial", exitCode: null };
      },
    });
    const tools = harness(backend);
    expect(await tools.text("execute", { command: "x" }, { signal: controller.signal })).toBe(
      "Error: execute was cancelled.",
    );
  });
});

describe("a command that leaves programs running", () => {
  const told = (endsLeftovers: boolean, jobs: boolean, command: string) => {
    const commands = { endsLeftovers };
    const backend = foreignBackend({ id: "test", commands, execute: () => DONE });
    return harness(backend, { jobs }).text("execute", { command });
  };

  test.each([
    ["sleep 100 & echo on", true],
    ["nohup sleep 100 >/dev/null 2>&1 &\necho on", true],
    ["sleep 0 & wait; echo on", false],
    ["echo on && true 2>&1 | cat &> /dev/stdout", false],
    ["echo 'on & off' \"a & b\" c\\&d # & e", false],
  ])("is answered with a way to keep them: %s", async (command, isTold) => {
    expect((await told(true, true, command)).includes("background: true")).toBe(isTold);
  });

  test("says nothing where they stay, and where no job can be started", async () => {
    expect(await told(false, true, "sleep 100 &")).not.toContain("background");
    expect(await told(true, false, "sleep 100 &")).not.toContain("background");
  });
});
