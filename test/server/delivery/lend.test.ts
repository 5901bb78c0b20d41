import { expect, describe, test } from "vitest";
import { ClientModel } from "../../../src/agent/models/client-model.ts";
import type { RunService } from "../../../src/runs/service.ts";
import {
  cleanUpWith,
  databaseFile,
  FAST,
  ME,
  mine,
  noteTool,
  openServer,
  reach,
} from "../../runs/support.ts";
import {
  CLIENT_KINDS,
  type ClientKind,
  type LentModel,
  type Sampled,
  type SampledReply,
  type TestClient,
} from "../../support/clients.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { connect, depsFor } from "../support.ts";

const says = (text: string): SampledReply => ({
  role: "assistant",
  model: "lent-1",
  stopReason: "endTurn",
  content: { type: "text", text },
});
const calls = (...uses: { name: string; input: Record<string, unknown> }[]): SampledReply => ({
  role: "assistant",
  model: "lent-1",
  stopReason: "toolUse",
  content: uses.map((use, index) => ({ type: "tool_use", id: `use_${index}`, ...use })),
});

/** Notes `a` and `b` at once, then tells what it got. */
function noting(seen: Sampled[] = []): LentModel {
  return (request) => {
    seen.push(request);
    if (request.messages.length === 1) {
      return calls({ name: "note", input: { text: "a" } }, { name: "note", input: { text: "b" } });
    }
    return says("both are noted");
  };
}

interface Opened {
  service: RunService;
  notes: string[];
  file: string;
  kill: () => void;
}

/** A server that works with its clients' model; `lendMs`: how long a run keeps its place for one. */
function open({
  file = databaseFile(),
  lendMs = 10_000,
  gated = false,
  fallback = false,
  notes = [] as string[],
} = {}): Opened {
  const { service, kill } = openServer(
    file,
    (_run, lender) => ({
      model: new ClientModel(lender),
      tools: [noteTool(notes)],
      interruptOn: { note: gated },
      ...(fallback ? { fallbackModels: [scriptedModel(() => ({ text: "the other one answers" }))] } : {}),
    }),
    { timing: { ...FAST, lendMs } },
  );
  return { service, notes, file, kill };
}

const connectTo = (service: RunService, kind: ClientKind, model?: LentModel, principal = ME) =>
  connect(depsFor(service, { config: { model: "client" }, principalOf: () => principal }), {
    kind,
    ...(model === undefined ? {} : { model }),
  });

async function startRun(service: RunService, task = "note two things"): Promise<string> {
  const started = await mine(service).control.start({ task });
  if (!started.ok) throw new Error(started.message);
  return started.run.id;
}

/** Checks until the run is completed. */
async function completedBy(client: TestClient, runId: string): Promise<void> {
  for (;;) {
    const { structured } = await client.call("check_deep_agent", { run_id: runId });
    if (structured["status"] === "completed") return;
  }
}

describe.each(CLIENT_KINDS)("%s", (kind) => {
  test("a run works with the client's model", async () => {
    const { service, notes } = open();
    const seen: Sampled[] = [];
    const client = await connectTo(service, kind, noting(seen));
    const { structured, isError } = await client.call("run_deep_agent", { task: "note two things" });
    expect({ isError, ...structured }).toMatchObject({
      isError: false,
      status: "completed",
      answer: "both are noted",
    });
    expect(notes.sort()).toEqual(["a", "b"]);
    expect(seen).toHaveLength(2);
    expect(seen[0]?.tools?.map(({ name }) => name)).toContain("note");
    expect(seen[0]?.systemPrompt).toContain("write_todos");
    expect(seen[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(seen[1]?.messages[2]?.content).toMatchObject([
      { type: "tool_result", toolUseId: expect.any(String) as string },
      { type: "tool_result", toolUseId: expect.any(String) as string },
    ]);
  });

  test("subagents that ask at the same time are all answered", async () => {
    const { service } = open();
    const model: LentModel = ({ messages, tools }) => {
      const isMain = tools?.some(({ name }) => name === "task") === true;
      if (!isMain) return says(`report on ${JSON.stringify(messages[0]?.content).length}`);
      if (messages.length > 1) return says("two reports");
      const task = (description: string) => ({
        name: "task",
        input: { description, subagent_type: "general-purpose" },
      });
      return calls(task("first half"), task("the second half"));
    };
    const client = await connectTo(service, kind, model);
    const { structured } = await client.call("run_deep_agent", { task: "split it" });
    expect(structured).toMatchObject({ status: "completed", answer: "two reports" });
    expect(structured["agents"]).toHaveLength(2);
  });

  test("a run whose client is gone waits, and the next client goes on with it", async () => {
    const { service, notes } = open({ lendMs: 20 });
    const runId = await startRun(service);
    await reach(service, runId, "input_required");
    const idle = await connectTo(service, kind);
    const { text } = await idle.call("check_deep_agent", { run_id: runId, wait_seconds: 1 });
    expect(text).toContain("waits for a client that lends its model");
    const lending = await connectTo(service, kind, noting());
    await completedBy(lending, runId);
    expect(notes.sort()).toEqual(["a", "b"]);
  });

  test("another principal's client is asked nothing", async () => {
    const { service } = open({ lendMs: 20 });
    const runId = await startRun(service);
    await reach(service, runId, "input_required");
    const seen: Sampled[] = [];
    const stranger = await connectTo(service, kind, noting(seen), "somebody-else");
    const { isError } = await stranger.call("check_deep_agent", { run_id: runId, wait_seconds: 0 });
    expect(isError).toBe(true);
    expect(await service.as({ principal: "somebody-else" }).read.modelCalls(runId)).toEqual([]);
    const [asked] = await mine(service).read.modelCalls(runId);
    const reply = { kind: "answer" as const, content: [], model: "x" };
    expect(
      await service.as({ principal: "somebody-else" }).control.replyToModel(runId, asked?.id ?? "", reply),
    ).toMatchObject({
      ok: false,
    });
    expect(seen).toEqual([]);
  });

  test("a client that does not lend its model is told so before a run is started", async () => {
    const { service } = open();
    const client = await connectTo(service, kind);
    const { text, isError } = await client.call("run_deep_agent", { task: "note two things" });
    expect(isError).toBe(true);
    expect(text).toContain("does not lend it");
    expect(await mine(service).read.list({ limit: 1 })).toEqual([]);
  });
});

describe.each(["v1", "v2-legacy"] as const)("%s", (kind) => {
  const refusing: LentModel = () => {
    throw new Error("User rejected sampling request");
  };

  test("a client that declines ends the run with what it said", async () => {
    const { service } = open();
    const client = await connectTo(service, kind, refusing);
    const { structured, text } = await client.call("run_deep_agent", { task: "note two things" });
    expect(structured).toMatchObject({ status: "failed", failure_reason: "model_unavailable" });
    expect(text).toContain("User rejected sampling request");
  });

  test("a client that declines is replaced by a fallback model", async () => {
    const { service } = open({ fallback: true });
    const client = await connectTo(service, kind, refusing);
    const { structured } = await client.call("run_deep_agent", { task: "note two things" });
    expect(structured).toMatchObject({ status: "completed", answer: "the other one answers" });
  });

  test("what the client began when its call ends is not lost: it is asked nothing twice", async () => {
    const { service } = open();
    const runId = await startRun(service);
    const asked: string[] = [];
    const client = await connectTo(service, kind, async ({ messages }) => {
      asked.push(JSON.stringify(messages));
      // News of the run: the call that waits for it is over.
      if (asked.length === 1) await mine(service).control.tell(runId, { text: "and be quick" });
      return says("said");
    });
    await completedBy(client, runId);
    expect(asked).toHaveLength(2);
    expect(new Set(asked).size).toBe(2);
  });
});

test("a server that is killed while a client thinks finds the reply in the database", async () => {
  const first = open({ lendMs: 20 });
  const runId = await startRun(first.service);
  await reach(first.service, runId, "input_required");
  const [call] = await mine(first.service).read.modelCalls(runId);
  first.kill();
  const second = open({ file: first.file, lendMs: 20, notes: first.notes });
  const reply = {
    kind: "answer" as const,
    model: "lent-1",
    content: [{ type: "tool_use" as const, id: "use_0", name: "note", input: { text: "a" } }],
  };
  expect(await mine(second.service).control.replyToModel(runId, call?.id ?? "", reply)).toEqual({
    ok: true,
    repeated: false,
  });
  expect(await mine(second.service).control.replyToModel(runId, call?.id ?? "", reply)).toEqual({
    ok: true,
    repeated: true,
  });
  await expect.poll(() => second.notes).toEqual(["a"]);
  await reach(second.service, runId, "input_required");
  const [next] = await mine(second.service).read.modelCalls(runId);
  const done = {
    kind: "answer" as const,
    model: "lent-1",
    content: [{ type: "text" as const, text: "noted" }],
  };
  await mine(second.service).control.replyToModel(runId, next?.id ?? "", done);
  expect((await reach(second.service, runId, "completed")).run.answer).toBe("noted");
  expect(await mine(second.service).read.modelCalls(runId)).toEqual([]);
});

test("a reply that is late changes nothing", async () => {
  const { service } = open({ lendMs: 20 });
  const runId = await startRun(service);
  await reach(service, runId, "input_required");
  const [call] = await mine(service).read.modelCalls(runId);
  await mine(service).control.cancel(runId, "no longer needed");
  const reply = { kind: "answer" as const, content: [], model: "x" };
  expect(await mine(service).control.replyToModel(runId, call?.id ?? "", reply)).toEqual({
    ok: true,
    repeated: true,
  });
  expect((await mine(service).read.view(runId))?.run.status).toBe("cancelled");
});

test("an approval is decided while another agent of the run waits for a model", async () => {
  const { service, notes } = open({ lendMs: 20, gated: true });
  const client = await connect(depsFor(service, { config: { model: "client" } }), {
    kind: "v2-legacy",
    model: noting(),
    person: () => ({ action: "accept", content: { decision: "approve" } }),
  });
  const { structured } = await client.call("run_deep_agent", { task: "note two things" });
  expect(structured).toMatchObject({ status: "completed" });
  expect(notes.sort()).toEqual(["a", "b"]);
  cleanUpWith(() => client.close());
});
