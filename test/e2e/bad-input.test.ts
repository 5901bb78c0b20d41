import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CLIENT_KINDS } from "../support/clients.ts";
import { openWorld } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import type { WireReply } from "../support/wire-server-protocol.ts";

const noModel = play({});
const answering = play({ "Say hello": [{ text: "hello" }] });

/** Calls that are refused, with what each is told. */
const REFUSED: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
  ["run_deep_agent", { task: "x", thread_id: "thr_none" }, /thr_none/],
  ["check_deep_agent", { run_id: "run_none" }, /No run has the id "run_none"/],
  ["cancel_deep_agent", { run_id: "run_none" }, /No run has the id "run_none"/],
  ["read_agent_file", { path: "/workspace/../../etc/passwd" }, /passwd|\.\./],
  ["read_agent_file", { path: "/workspace/none.md" }, /none\.md/],
  ["read_agent_file", { path: "/workspace/leak" }, /leak/],
];

describe.each(CLIENT_KINDS)("%s", (kind) => {
  test("bad arguments are refused in words, and the server lives", async () => {
    const world = await openWorld("memory", { think: noModel });
    symlinkSync("/etc/passwd", join(world.workspace, "leak"));
    const client = await world.connect(kind);
    for (const [tool, args, message] of REFUSED) {
      const refused = await client.call(tool, args);
      expect(refused.isError).toBe(true);
      expect(refused.text).toMatch(message);
      expect(refused.text).not.toMatch(/root:|\n\s+at /);
      expect(refused.text).not.toContain(world.workspace);
    }
    expect((await client.listTools()).length).toBe(5);
  });

  test("a workspace that is gone stops new runs with the way out", async () => {
    const world = await openWorld("memory", { think: noModel });
    rmSync(world.workspace, { recursive: true });
    const client = await world.connect(kind);
    const refused = await client.call("run_deep_agent", { task: "anything" });
    expect(refused.isError).toBe(true);
    expect(refused.text).toMatch(/workspace.*--workspace/s);
    expect(refused.text).not.toContain(world.workspace);
  });

  test("without a model a run is refused with the three ways out", async () => {
    const env = { DEEPAGENT_MODEL: "", ANTHROPIC_API_KEY: "" };
    const world = await openWorld("memory", { think: noModel, env });
    const client = await world.connect(kind);
    const refused = await client.call("run_deep_agent", { task: "anything" });
    expect(refused.isError).toBe(true);
    expect(refused.text).toMatch(/ANTHROPIC_API_KEY.*--model.*offline/s);
  });
});

test.each<[string, WireReply, string]>([
  ["refuses the key", { status: 401, message: "invalid x-api-key" }, "model_auth"],
  ["does not know the model", { status: 404, message: "model: claude-test" }, "model_not_found"],
  ["breaks off its answers", { fault: "cut" }, "model_stream_broken"],
  [
    "limits the rate",
    { status: 429, message: "slow down", headers: { "retry-after": "0" } },
    "model_rate_limited",
  ],
  ["fails", { status: 500, message: "internal", headers: { "retry-after": "0" } }, "model_unavailable"],
])("a run whose model %s fails with a stable reason, and the server lives", async (_name, fault, reason) => {
  let broken = true;
  const world = await openWorld("memory", {
    think: (thought) => (broken ? fault : answering(thought)),
    env: { DEEPAGENT_LIMITS_MODEL_PATIENCE: "0" },
  });
  const client = await world.connect("v2-modern");
  const failed = await client.call("run_deep_agent", { task: "Say hello" });
  expect(failed).toMatchObject({ isError: true, structured: { status: "failed", failure_reason: reason } });
  expect(failed.text).not.toMatch(/\n\s+at |wire-test-key/);
  broken = false;
  const next = await client.call("run_deep_agent", { task: "Say hello" });
  expect(next).toMatchObject({ isError: false, structured: { status: "completed", answer: "hello" } });
});

test("a file whose name needs encoding is read through the tool and as a resource", async () => {
  const world = await openWorld("memory", { think: noModel });
  writeFileSync(join(world.workspace, "50% off?.md"), "sale\n");
  const client = await world.connect("v1");
  const read = await client.call("read_agent_file", { path: "/workspace/50% off?.md" });
  expect(read).toMatchObject({ isError: false });
  expect(read.text).toContain("sale");
  const { contents } = await client.readResource("deepagent://files/workspace/50%25%20off%3F.md");
  expect(contents[0]).toMatchObject({ text: "sale\n" });
});
