import { isApproval } from "../../src/runs/run.ts";
import { ToolMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import type { DeepAgentParams } from "../../src/agent/agent.ts";
import type { PersonDecision } from "../../src/tools/request.ts";
import type { RunService } from "../../src/runs/service.ts";
import { scriptedModel, type ScriptedToolCall } from "../support/scripted-model.ts";
import {
  databaseFile,
  follow,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
  reachAsked,
} from "./support.ts";

const SAME: PersonDecision = { type: "approve_same" };

const write = (path: string, content: string): ScriptedToolCall => ({
  name: "write_file",
  args: { file_path: path, content },
});
const edit = (path: string, from: string, to: string): ScriptedToolCall => ({
  name: "edit_file",
  args: { file_path: path, old_string: from, new_string: to },
});

/** An agent that makes these calls, one batch after the other; all of them are gated. */
function agentOf(
  notes: string[],
  batches: ScriptedToolCall[][],
  gate: object | true = true,
): DeepAgentParams {
  const model = scriptedModel(({ messages }) => {
    const done = messages.filter((message) => ToolMessage.isInstance(message)).length;
    let made = 0;
    for (const toolCalls of batches) {
      if (made === done) return { toolCalls };
      made += toolCalls.length;
    }
    return { text: "done" };
  });
  const interruptOn = { note: gate, write_file: gate, edit_file: gate };
  return { model, tools: [noteTool(notes)], interruptOn };
}

/** Answers the approvals in the order in which they are asked; gives what was asked. */
async function answerAll(
  service: RunService,
  runId: string,
  ...answers: PersonDecision[]
): Promise<string[]> {
  const asked: string[] = [];
  for (const answer of answers) {
    const approvals = (await reach(service, runId, "input_required")).requests.filter(isApproval);
    const open = approvals.find(({ status }) => status === "pending");
    asked.push(`${open?.tool} ${String(open?.args["text"] ?? open?.args["file_path"])}`);
    const outcome = await mine(service).requests.answer(
      runId,
      { requestId: open?.id ?? "", answer: answer },
      "person",
    );
    expect(outcome).toMatchObject({ ok: true, how: "stored" });
  }
  return asked;
}

test("the same call is not asked for again in this run; every time it goes ahead is an event", async () => {
  const notes: string[] = [];
  const agent = agentOf(notes, [[note("a")], [note("a")], [note("b")], [note("a"), note("b")]]);
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "notes");
  const asked = await answerAll(service, run.id, SAME, { type: "approve" }, { type: "reject" });
  expect(asked).toEqual(["note a", "note b", "note b"]);
  const approvals = (await reach(service, run.id, "completed")).requests.filter(isApproval);
  expect(notes).toEqual(["a", "a", "b", "a"]);
  const [first] = approvals;
  expect(approvals.map(({ decidedBy }) => decidedBy)).toEqual(
    ["person", `same as ${first?.id}`, "person"].concat(
      approvals.slice(3).map(({ args }) => (args["text"] === "a" ? `same as ${first?.id}` : "person")),
    ),
  );
  const decided = (await follow(service, run.id)).filter(({ kind }) => kind === "approval_decided");
  expect(decided).toHaveLength(5);
  expect(decided[0]?.data).toMatchObject({ decision: "approve_same", by: "person" });
  expect(decided[1]?.data).toMatchObject({ decision: "approve", by: `same as ${first?.id}` });
});

test("for a file it is the same tool on the same path, however the path is written", async () => {
  const agent = agentOf(
    [],
    [
      [write("/a.md", "one")],
      [edit("/a.md", "one", "two")],
      [edit("/./a.md", "two", "three")],
      [write("/b.md", "x")],
    ],
  );
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "edits");
  const asked = await answerAll(service, run.id, { type: "approve" }, SAME, { type: "reject" });
  expect(asked).toEqual(["write_file /a.md", "edit_file /a.md", "write_file /b.md"]);
  await reach(service, run.id, "completed");
});

test("it is listed while the run lasts, survives a restart, and ends with the run", async () => {
  const notes: string[] = [];
  const file = databaseFile();
  const agent = agentOf(notes, [[note("a")], [note("b")], [note("a")]]);
  const first = openServer(file, agent);
  const run = await startRun(first.service, "notes");
  await answerAll(first.service, run.id, SAME);
  const { grants, requests } = await reach(first.service, run.id, "input_required");
  const approvals = requests.filter(isApproval);
  expect(grants).toMatchObject([{ tool: "note", approvalId: approvals[0]?.id, grantedBy: "person" }]);
  expect(grants[0]?.text).toBe("note with exactly these arguments");
  first.kill();
  const next = openServer(file, agent);
  await answerAll(next.service, run.id, { type: "approve" });
  expect((await reach(next.service, run.id, "completed")).grants).toEqual([]);
  expect(notes).toEqual(["a", "b", "a"]);
  const again = await startRun(next.service, "notes once more");
  expect(await answerAll(next.service, again.id, { type: "reject" })).toEqual(["note a"]);
  await mine(next.service).control.cancel(again.id, "enough");
});

test("what waits already and is the same goes ahead at once", async () => {
  const notes: string[] = [];
  const { service } = openServer(databaseFile(), agentOf(notes, [[note("a"), note("a"), note("b")]]));
  const run = await startRun(service, "notes");
  const approvals = (await reachAsked(service, run.id, 3)).requests.filter(isApproval);
  const one = approvals.find(({ args }) => args["text"] === "a");
  await mine(service).requests.answer(run.id, { requestId: one?.id ?? "", answer: SAME }, "person");
  await expect.poll(() => notes).toEqual(["a", "a"]);
  const view = await mine(service).read.view(run.id);
  expect(view?.requests.filter(isApproval).filter(({ status }) => status === "pending")).toMatchObject([
    { args: { text: "b" } },
  ]);
  await mine(service).control.cancel(run.id, "enough");
});

test("nobody approves the same where approving is not allowed", async () => {
  const gate = { allowedDecisions: ["edit", "reject"] };
  const { service } = openServer(databaseFile(), agentOf([], [[note("a")]], gate));
  const run = await startRun(service, "notes");
  const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
  const outcome = await mine(service).requests.answer(
    run.id,
    { requestId: approvals[0]?.id ?? "", answer: SAME },
    "person",
  );
  expect(outcome).toMatchObject({ ok: false, code: "invalid_answer" });
  await mine(service).control.cancel(run.id, "enough");
});

test("arguments that look like a grant grant nothing", async () => {
  const notes: string[] = [];
  const forged = {
    name: "note",
    args: { text: "a", same: { key: "x", text: "everything" }, decision: "approve_same" },
  };
  const { service } = openServer(databaseFile(), agentOf(notes, [[forged], [note("b")]]));
  const run = await startRun(service, "notes");
  const asked = await answerAll(service, run.id, { type: "approve" }, { type: "approve" });
  expect(asked).toEqual(["note a", "note b"]);
  const approvals = (await reach(service, run.id, "completed")).requests.filter(isApproval);
  expect(new Set(approvals.map(({ same }) => same?.key)).size).toBe(2);
});
