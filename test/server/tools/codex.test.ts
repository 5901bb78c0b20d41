import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { databaseFile, note, openServer, startRun } from "../../runs/support.ts";
import { CLIENT_KINDS, type ClientKind } from "../../support/clients.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { approvalRuns, connect, depsFor } from "../support.ts";

async function session(kind: ClientKind) {
  const workspace = filesIn();
  mkdirSync(join(workspace, "sub"));
  const model = scriptedModel(({ messages }) => ({
    text: `answers ${messages.filter((message) => message.getType() === "human").length}`,
  }));
  const { service } = openServer(databaseFile(), { model });
  const deps = depsFor(service, { config: { codexTools: true, workspace } });
  return { workspace, model, client: await connect(deps, { kind }) };
}

test.each(CLIENT_KINDS)("%s: a session gives its thread and answer, and continues", async (kind) => {
  const { client, model, workspace } = await session(kind);
  const first = await client.call("codex", {
    prompt: "Do it",
    cwd: join(workspace, "sub"),
    "developer-instructions": "Be brief.",
    "approval-policy": "never",
    sandbox: "workspace-write",
    config: { any: "thing" },
  });
  expect(first).toMatchObject({
    isError: false,
    structured: { content: "answers 1", answer: "answers 1" },
  });
  expect(model.requests[0]?.messages.at(-1)?.text).toContain(
    "Be brief.\n\nWork in the folder /workspace/sub.\n\nDo it",
  );
  const { threadId } = first.structured;
  const second = await client.call("codex-reply", { threadId, prompt: "More" });
  expect(second.structured).toMatchObject({ threadId, content: "answers 2" });
  const third = await client.call("codex-reply", { conversationId: threadId, prompt: "And more" });
  expect(third.structured).toMatchObject({ threadId, content: "answers 3" });
});

test("what a server cannot do is refused in one sentence, and starts nothing", async () => {
  const { client, model, workspace } = await session("v1");
  const refused = async (tool: string, args: object): Promise<string> => {
    const { isError, text } = await client.call(tool, { ...args });
    expect(isError).toBe(true);
    return text;
  };
  expect(await refused("codex", { prompt: "x", sandbox: "read-only" })).toContain("Leave sandbox out");
  const elsewhere = await refused("codex", { prompt: "x", cwd: tmpdir() });
  expect(elsewhere).toContain(`the folder ${basename(workspace)} only`);
  expect(elsewhere).not.toContain(workspace);
  expect(await refused("codex", { prompt: "x", model: "openai:none" })).toMatch(/openai:none|model/);
  expect(await refused("codex", { prompt: " " })).toContain("describe the task");
  const long = "x".repeat(60_000);
  expect(await refused("codex", { prompt: long, "developer-instructions": long })).toContain("together");
  expect(await refused("codex-reply", { prompt: "x" })).toContain("threadId, as codex returned it");
  expect(await refused("codex-reply", { prompt: "x", threadId: "thr_none" })).toContain("thr_none");
  expect(model.requests).toEqual([]);
});

test("instructions with half a character become text that can be sent", async () => {
  const { client, model } = await session("v1");
  await client.call("codex", { prompt: "Do it", "developer-instructions": "Be \ud800 brief." });
  expect(model.requests[0]?.messages.at(-1)?.text).toContain("Be \ufffd brief.\n\nDo it");
});

test("a run that waits says so in the same fields", async () => {
  const { service } = approvalRuns(note("a"));
  const client = await connect(depsFor(service, { config: { codexTools: true } }), { kind: "v1" });
  const { structured } = await client.call("codex", { prompt: "note a" });
  expect(structured).toMatchObject({ threadId: structured["thread_id"], status: "input_required" });
  expect(structured["content"]).toContain("note");
  await expect(
    connect(depsFor(service), { kind: "v1" }).then((other) => other.call("codex", { prompt: "x" })),
  ).rejects.toThrow("codex");
  expect(await startRun(service, "still works")).toBeDefined();
});
