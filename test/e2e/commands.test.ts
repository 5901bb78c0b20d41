import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { isAsleep, uniqueSleep, until } from "../backends/sandbox/support.ts";
import { openWorld, type HomeOptions } from "../support/harness.ts";
import { answersOf, play } from "../support/harness-brain.ts";
import { APPROVE, inWorkspace, person, repeat } from "./support.ts";

const run = (command: string, more: Record<string, unknown> = {}) => ({
  name: "execute",
  args: { command, ...more },
});

/** The agent runs these commands in one reply, then repeats what it was told. */
const runs = (...commands: string[]): HomeOptions["think"] =>
  play({ "Run commands": [{ toolCalls: commands.map((command) => run(command)) }, repeat] });

const TASK = { task: "Run commands" };

describe("commands in the sandbox", { tags: "bwrap" }, () => {
  test("an approved command runs where the file tools work; a rejected one does not run", async () => {
    const think = runs("cat alpha.txt; pwd; echo made > /workspace/made.txt", "echo no > rejected.txt");
    const world = await openWorld("memory", { files: { "alpha.txt": "one\n" }, think });
    const { forms, answer } = person({
      "made.txt": APPROVE,
      "rejected.txt": { action: "accept", content: { decision: "reject" } },
    });
    const client = await world.connect("v2-modern", answer);
    const { structured } = await client.call("run_deep_agent", TASK);
    expect(structured["status"]).toBe("completed");
    expect(structured["answer"]).toContain("one\n/workspace\n[Command succeeded with exit code 0]");
    expect(inWorkspace(world, "made.txt")).toBe("made\n");
    expect(inWorkspace(world, "rejected.txt")).toBeUndefined();
    expect(forms).toHaveLength(2);
    expect(forms[0]?.message).toContain("in a sandbox");
  });

  test("nothing outside the workspace is read or written, and there is no network", async () => {
    const server = createServer((_request, response) => response.end("reached"));
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo; // it listens on TCP
    const options = { env: { DEEPAGENT_APPROVALS_EXECUTE: "unsandboxed" } };
    let outside = "";
    const world = await openWorld("memory", {
      ...options,
      think: (thought) =>
        runs(
          `cat ${outside} || echo hidden`,
          `echo x > ${outside}.new || echo refused`,
          `exec 3<>/dev/tcp/127.0.0.1/${port} && echo reached`,
          "env | grep -c ANTHROPIC",
        )(thought),
    });
    outside = join(world.dataDir, "..", "outside.txt");
    writeFileSync(outside, "secret");
    const client = await world.connect("v2-modern");
    const { structured } = await client.call("run_deep_agent", TASK);
    expect(structured["status"]).toBe("completed");
    const answers = world.brain.thoughts.flatMap((thought) => answersOf(thought).map(({ text }) => text));
    expect(answers).toHaveLength(4);
    expect(answers[0]).toMatch(/hidden/);
    expect(answers.join("\n")).not.toContain("secret");
    expect(answers[1]).toMatch(/refused/);
    expect(answers[2]).toMatch(/failed with exit code/);
    expect(answers[3]).toMatch(/^0\n/);
    expect(existsSync(`${outside}.new`)).toBe(false);
  });

  test("a background job can be read by later calls, and ends with the run", async () => {
    const seconds = uniqueSleep();
    const world = await openWorld("memory", {
      env: { DEEPAGENT_APPROVALS_EXECUTE: "unsandboxed" },
      think: play({
        "Run commands": [
          { toolCalls: [run(`echo begun; touch begun; sleep ${seconds}`, { background: true })] },
          { toolCalls: [run("until [ -e begun ]; do sleep 0.01; done")] },
          { toolCalls: [{ name: "job", args: { action: "list" } }] },
          repeat,
        ],
      }),
    });
    const client = await world.connect("v2-modern");
    const { structured } = await client.call("run_deep_agent", TASK);
    expect(structured["answer"]).toMatch(/^job_[0-9a-f]{8}: is running: echo begun/);
    await until(() => !isAsleep(seconds));
  });
});

describe("commands without a sandbox", () => {
  /** A search path on which there is no bwrap. */
  const withoutBubblewrap = (): void => {
    const path = process.env["PATH"];
    process.env["PATH"] = "/nowhere";
    onTestFinished(() => {
      process.env["PATH"] = path;
    });
  };

  test("each needs a person, whatever is configured", async () => {
    withoutBubblewrap();
    const world = await openWorld("memory", {
      env: { DEEPAGENT_APPROVALS_EXECUTE: "unsandboxed" },
      think: runs("echo made > made.txt"),
    });
    const { forms, answer } = person({ "made.txt": APPROVE });
    const client = await world.connect("v2-modern", answer);
    const { structured } = await client.call("run_deep_agent", TASK);
    expect(structured["status"]).toBe("completed");
    expect(forms).toHaveLength(1);
    expect(forms[0]?.message).toContain("outside any sandbox");
    expect(inWorkspace(world, "made.txt")).toBe("made\n");
  });

  test.each([{ DEEPAGENT_EXECUTE_MODE: "sandbox" }, { DEEPAGENT_EXECUTE_MODE: "off" }])(
    "%j: there is no tool for them",
    async (env) => {
      withoutBubblewrap();
      const world = await openWorld("memory", { env, think: () => ({ text: "done" }) });
      const client = await world.connect("v2-modern");
      await client.call("run_deep_agent", TASK);
      const names = world.brain.thoughts.flatMap(({ request }) => request.tools);
      expect(names).toContain("read_file");
      expect(names).not.toContain("execute");
    },
  );
});
