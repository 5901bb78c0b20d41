import { isApproval } from "../../src/runs/run.ts";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { expect, test } from "vitest";
import { z as z3 } from "zod/v3";
import type { Decision } from "../../src/tools/request.ts";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import {
  mine,
  approve,
  calling,
  databaseFile,
  follow,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
  reachAsked,
  askedAbout,
} from "./support.ts";
import { z } from "zod";

const GATED = { interruptOn: { note: true } };

test("a gated call waits as an approval without holding a slot, and runs once it is approved", async () => {
  const notes: string[] = [];
  const agent = { ...GATED, model: calling(note("a")), tools: [noteTool(notes)] };
  const { service } = openServer(databaseFile(), agent, { concurrentRuns: 1 });
  const first = await startRun(service, "first");
  const second = await startRun(service, "second");
  await reach(service, first.id, "input_required");
  const { activity, requests } = await reach(service, second.id, "input_required");
  const approvals = requests.filter(isApproval);
  expect(approvals).toMatchObject([
    { tool: "note", args: { text: "a" }, status: "pending", index: 0, agent: [] },
  ]);
  expect(approvals[0]?.id).toBe(`${approvals[0]?.interruptId}:0`);
  expect(activity).toMatch(/^requested approval: /);
  expect(notes).toEqual([]);
  await approve(service, first.id, "a");
  const { run } = await reach(service, first.id, "completed");
  expect(run.answer).toBe("noted a");
  expect(notes).toEqual(["a"]);
  expect((await mine(service).read.view(second.id))?.run.status).toBe("input_required");
});

test("partial answers in any order: each approved call runs once, the others wait on", async () => {
  const notes: string[] = [];
  const agent = { ...GATED, model: calling(note("a"), note("b"), note("c")), tools: [noteTool(notes)] };
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "three notes");
  await reachAsked(service, run.id, 3);
  for (const text of ["c", "a", "b"]) {
    await approve(service, run.id, text);
    await follow(
      service,
      run.id,
      ({ kind, data }) => kind === "tool_finished" && data["summary"] === `noted ${text}`,
    );
  }
  const view = await reach(service, run.id, "completed");
  expect(notes).toEqual(["c", "a", "b"]);
  expect(view.run.answer).toBe("noted a; noted b; noted c");
  expect(view.requests.filter(isApproval).map(({ status }) => status)).toEqual([
    "approved",
    "approved",
    "approved",
  ]);
});

test("an approval given while siblings still work is taken up when they are done", async () => {
  const notes: string[] = [];
  const slow = deferred();
  const tools = [noteTool(notes, (text) => (text === "slow" ? slow.promise : Promise.resolve()))];
  const agent = { model: calling(note("gated"), note("slow")), tools, interruptOn: askedAbout("gated") };
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "two notes");
  await reach(service, run.id, "input_required");
  await approve(service, run.id, "gated");
  expect((await mine(service).read.view(run.id))?.run.status).toBe("working");
  expect(notes).toEqual([]);
  slow.resolve();
  await reach(service, run.id, "completed");
  expect(notes).toEqual(["slow", "gated"]);
});

/** A run that waits for the approval of one note. */
async function waiting(notes: string[], gate: object | true = true) {
  const agent = { model: calling(note("a")), tools: [noteTool(notes)], interruptOn: { note: gate } };
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "note a");
  const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
  const id = approvals[0]?.id ?? "";
  const decide = (decision: Decision) =>
    mine(service).requests.answer(run.id, { requestId: id, answer: decision }, "test");
  return { service, run, id, decide };
}

const edit = (args: Record<string, unknown>, name = "note"): Decision => ({
  type: "edit",
  editedAction: { name, args },
});

test("a rejected call does not run, and the agent is told in the person's words", async () => {
  const notes: string[] = [];
  const { service, run, decide } = await waiting(notes);
  expect(await decide({ type: "reject", message: "not today" })).toMatchObject({
    ok: true,
    how: "stored",
    request: { status: "rejected", decidedBy: "test" },
  });
  expect((await reach(service, run.id, "completed")).run.answer).toBe("not today");
  expect(notes).toEqual([]);
});

test("an edited call runs with the edited arguments, once they fit the tool", async () => {
  const notes: string[] = [];
  const { service, run, decide } = await waiting(notes);
  expect(await decide(edit({ text: "far too long to be a note" }))).toMatchObject({
    code: "invalid_answer",
  });
  expect(await decide(edit({ text: "b" }, "unknown"))).toMatchObject({ code: "invalid_answer" });
  expect((await mine(service).read.view(run.id))?.run.status).toBe("input_required");
  expect(await decide(edit({ text: "b" }))).toMatchObject({ ok: true, request: { status: "edited" } });
  await reach(service, run.id, "completed");
  expect(notes).toEqual(["b"]);
});

test("only allowed kinds of decision are taken", async () => {
  const { service, run, decide } = await waiting([], { allowedDecisions: ["approve", "reject"] });
  expect(await decide(edit({ text: "b" }))).toMatchObject({ ok: false, code: "invalid_answer" });
  expect((await mine(service).read.view(run.id))?.requests.filter(isApproval)[0]).toMatchObject({
    status: "pending",
    allowedDecisions: ["approve", "reject"],
  });
});

test("a repeated answer changes nothing and says so", async () => {
  const notes: string[] = [];
  const { service, run, decide } = await waiting(notes);
  await decide({ type: "approve" });
  await reach(service, run.id, "completed");
  const before = await mine(service).read.view(run.id);
  // The view alone knows the call of an approval, from the journal.
  const { callId, ...stored } = before?.requests.find(isApproval) ?? {};
  expect(callId).toBeDefined();
  expect(await decide({ type: "approve" })).toMatchObject({
    ok: true,
    how: "repeated",
    request: { status: "approved" },
  });
  for (const other of [{ type: "reject" } as const, edit({ text: "b" })]) {
    expect(await decide(other)).toEqual({
      ok: false,
      code: "already_answered",
      message: "This has already been decided: approved (test).",
      request: stored,
    });
  }
  expect(await mine(service).read.view(run.id)).toEqual(before);
  expect(notes).toEqual(["a"]);
});

test("a repeated edit is the same answer when its arguments are", async () => {
  const { service, run, decide } = await waiting([]);
  await decide(edit({ text: "b" }));
  await reach(service, run.id, "completed");
  expect(await decide(edit({ text: "b" }))).toMatchObject({ ok: true, how: "repeated" });
  expect(await decide(edit({ text: "c" }))).toMatchObject({ code: "already_answered" });
  expect(await decide({ type: "approve" })).toMatchObject({ code: "already_answered" });
});

test("an approval of another principal looks like one that does not exist", async () => {
  const { service, run, id } = await waiting([]);
  const foreign = await service
    .as({ principal: "someone" })
    .requests.answer(run.id, { requestId: id, answer: { type: "approve" } }, "test");
  const unknown = await mine(service).requests.answer(
    run.id,
    { requestId: "nothing:0", answer: { type: "approve" } },
    "test",
  );
  expect(foreign).toMatchObject({ ok: false, code: "not_found" });
  expect(unknown).toMatchObject({ ok: false, code: "not_found" });
  expect((await mine(service).read.view(run.id))?.requests.filter(isApproval)[0]?.status).toBe("pending");
});

test("an edit that the agent cannot follow any more denies the call", async () => {
  const notes: string[] = [];
  const file = databaseFile();
  const own = (...names: string[]) => ({
    ...GATED,
    model: calling(note("a")),
    tools: [noteTool(notes), ...names.map((name) => Object.assign(noteTool(notes), { name }))],
  });
  const first = openServer(file, own("remark"));
  const run = await startRun(first.service, "note a");
  const approvals = (await reach(first.service, run.id, "input_required")).requests.filter(isApproval);
  await first.service.close();
  const idle = openServer(file, own("remark"), { concurrentRuns: 0 });
  const id = approvals[0]?.id ?? "";
  expect(
    await mine(idle.service).requests.answer(
      run.id,
      { requestId: id, answer: edit({ text: "b" }, "remark") },
      "test",
    ),
  ).toMatchObject({
    ok: true,
    request: { status: "edited" },
  });
  await idle.service.close();
  const { service } = openServer(file, own());
  const { answer } = (await reach(service, run.id, "completed")).run;
  expect(answer).toBe(
    "Error: A person changed this call to one that cannot run. remark is not a tool of this agent.",
  );
  expect(notes).toEqual([]);
});

test.each([
  [
    "JSON Schema",
    { type: "object" as const, properties: { text: { type: "string" as const, maxLength: 20 } } },
  ],
  ["zod 3", z3.object({ text: z3.string().max(20) })],
  ["zod 4", z.object({ text: z.string().max(20) })],
])("an edit two subagents deep is checked by a tool with a schema of %s", async (_kind, schema) => {
  const notes: string[] = [];
  const own = new DynamicStructuredTool({
    name: "remark",
    description: "d",
    schema,
    func: async ({ text }: { text: string }) => `remarked ${notes.push(text)}`,
  });
  const model = scriptedModel(({ messages, tools }) => {
    if (messages.some((message) => message.type === "tool")) return { text: messages.at(-1)?.text ?? "" };
    const delegate = { name: "task", args: { description: "d", subagent_type: "worker" } };
    return { toolCalls: [tools.includes("task") ? delegate : { name: "remark", args: { text: "a" } }] };
  });
  const worker = {
    name: "worker",
    description: "d",
    systemPrompt: "p",
    tools: [own],
    interruptOn: { remark: true },
  };
  const { service } = openServer(databaseFile(), {
    model,
    subagents: [worker],
    limits: { subagentDepth: 2 },
  });
  const run = await startRun(service, "have a remark made");
  const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
  expect(approvals[0]?.agent).toHaveLength(2);
  const decide = (decision: Decision) =>
    mine(service).requests.answer(run.id, { requestId: approvals[0]?.id ?? "", answer: decision }, "test");
  expect(await decide(edit({ text: "far too long to be a remark" }, "remark"))).toEqual({
    ok: false,
    code: "invalid_answer",
    message: expect.stringMatching(/^Invalid arguments for remark: text: .*string .*20/i),
  });
  expect((await mine(service).read.view(run.id))?.requests.filter(isApproval)).toMatchObject([
    { status: "pending" },
  ]);
  expect(await decide(edit({ text: "b" }, "remark"))).toMatchObject({ ok: true });
  await reach(service, run.id, "completed");
  expect(notes).toEqual(["b"]);
});

test("an edit has to be of the form that its gate says", async () => {
  const notes: string[] = [];
  const argsSchema = { properties: { text: { enum: ["b", "c"] } } };
  const { service, run, decide } = await waiting(notes, { argsSchema });
  expect(await decide(edit({ text: "d" }))).toMatchObject({
    code: "invalid_answer",
    message: 'Invalid arguments for note: text: Instance does not match any of ["b","c"].',
  });
  expect(await decide(edit({ text: "c" }))).toMatchObject({ ok: true });
  await reach(service, run.id, "completed");
  expect(notes).toEqual(["c"]);
});
