import { isApproval } from "../../../src/runs/run.ts";
import { expect, test } from "vitest";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { createLogger } from "../../../src/core/logger.ts";
import {
  approve,
  databaseFile,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { CLIENT_KINDS } from "../../support/clients.ts";
import { findings, isJudge, met, notMet } from "../../support/judge.ts";
import { scriptedModel, type ScriptedReply } from "../../support/scripted-model.ts";
import { approvalRuns, connect, connectTo, depsFor, plainRuns, ruledRuns } from "../support.ts";

test.each(CLIENT_KINDS)("%s: a run that ends in the window gives its answer", async (kind) => {
  const client = await connectTo(plainRuns("the answer"), kind);
  const { text, structured, isError } = await client.call("run_deep_agent", { task: "say it" });
  expect(isError).toBe(false);
  expect(structured).toMatchObject({ status: "completed", answer: "the answer", todos: [], agents: [] });
  expect(text).toMatch(/^the answer/);
});

test.each(CLIENT_KINDS)("%s: wrong arguments are named, one clear text each", async (kind) => {
  const service = plainRuns();
  const config = { approvals: { allowModelAnswers: true } };
  const client = await connect(depsFor(service, { config }), { kind });
  const cases: [string, Record<string, unknown>, string][] = [
    ["run_deep_agent", { taks: "x" }, 'unknown argument "taks"; the arguments are task, thread_id'],
    [
      "run_deep_agent",
      Object.fromEntries(Array.from({ length: 9000 }, (_, n) => [`colour${n}`, n])),
      '"colour9" and 8990 more; the arguments are task',
    ],
    ["run_deep_agent", {}, "task:"],
    ["run_deep_agent", { task: "  " }, "task: describe the task in words"],
    ["run_deep_agent", { task: "x", wait_seconds: -1 }, "wait_seconds:"],
    ["check_deep_agent", { run_id: 7 }, "run_id:"],
    ["answer_deep_agent", { run_id: "r", approval_id: "a", decision: "yes" }, "decision:"],
    ["read_agent_file", { path: "/a", limit: 0 }, "limit:"],
    ["search_memories", { query: "x", limit: 1000 }, "limit:"],
  ];
  for (const [tool, args, problem] of cases) {
    const { text, isError } = await client.call(tool, args);
    expect(isError).toBe(true);
    expect(text).toContain(problem);
    expect(text.length).toBeLessThan(1000);
    expect(text).not.toMatch(/\n\s+at |\/work\/|node_modules/);
  }
  await expect(client.call("run_deep_agnet", { task: "x" })).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining("run_deep_agnet"),
  });
});

test.each(CLIENT_KINDS)("%s: arguments that a client adds are ignored and named", async (kind) => {
  const client = await connectTo(plainRuns("the answer"), kind);
  const added = { wait_for_previous: true, ["__proto__x"]: { task: "other" } };
  const note = 'Ignored the unknown argument "wait_for_previous", "__proto__x"; the arguments are ';
  const run = await client.call("run_deep_agent", { task: "say it", ...added });
  expect(run).toMatchObject({ isError: false, structured: { answer: "the answer" } });
  expect(run.text).toContain(note);
  for (const [tool, args] of [
    ["check_deep_agent", {}],
    ["check_deep_agent", { run_id: (run.structured as { run_id: string }).run_id }], // the report of a run has one
    ["search_memories", { query: "x" }],
    ["read_agent_file", { path: "/memories/none.md" }],
  ] as const) {
    const { text, isError } = await client.call(tool, { ...args, ...added });
    expect(isError, tool).toBe(tool === "read_agent_file");
    expect(text, tool).toContain(note);
  }
});

test.each(CLIENT_KINDS)("%s: a check without run_id lists the caller's runs", async (kind) => {
  const { service } = approvalRuns(note("a"));
  const client = await connectTo(service, kind);
  const nothing = await client.call("check_deep_agent", {});
  expect(nothing).toMatchObject({ isError: false, structured: { runs: [] } });
  expect(nothing.text).toContain("run_deep_agent");
  const waits = await startRun(service, "note a");
  await reach(service, waits.id, "input_required");
  const done = await startRun(service, `note\u001b[2J ${"long ".repeat(100)}`);
  await reach(service, done.id, "input_required");
  await mine(service).control.cancel(done.id, "not wanted");
  await service.as({ principal: "someone else" }).control.start({ task: "secret" });
  const { structured, text } = await client.call("check_deep_agent", {});
  expect(structured["runs"]).toMatchObject([
    {
      run_id: waits.id,
      status: "input_required",
      task: "note a",
      activity: "requested approval: call note",
    },
    { run_id: done.id, status: "cancelled" },
  ]);
  expect(text.indexOf(waits.id)).toBeLessThan(text.indexOf(done.id));
  expect(text).toContain("requested approval: call note");
  expect(text).not.toContain("secret");
  expect(text.length).toBeLessThan(1000);
});

test.each(CLIENT_KINDS)("%s: a run of someone else looks like one that does not exist", async (kind) => {
  const { service } = approvalRuns(note("a"));
  const started = await service.as({ principal: "someone else" }).control.start({ task: "secret" });
  const foreign = started.ok ? started.run.id : "";
  const client = await connect(depsFor(service, { config: { approvals: { allowModelAnswers: true } } }), {
    kind,
  });
  const calls = (id: string): [string, Record<string, unknown>][] => [
    ["check_deep_agent", { run_id: id }],
    ["cancel_deep_agent", { run_id: id }],
    ["answer_deep_agent", { run_id: id, approval_id: "a", decision: "approve" }],
    ["read_agent_file", { path: "/a", run_id: id }],
  ];
  const unknown = `run_${"x".repeat(24)}`;
  for (const [index, [tool, args]] of calls(foreign).entries()) {
    const theirs = await client.call(tool, args);
    const nobodys = await client.call(tool, calls(unknown)[index]?.[1] ?? {});
    expect(theirs.isError).toBe(true);
    expect(theirs.text).toContain("No run has the id");
    expect(theirs.text.replaceAll(foreign, "ID")).toBe(nobodys.text.replaceAll(unknown, "ID"));
  }
});

test.each(CLIENT_KINDS)("%s: what the service refuses is told as it is", async (kind) => {
  const client = await connectTo(plainRuns(), kind);
  const { text, isError } = await client.call("run_deep_agent", { task: "x", thread_id: "thr_none" });
  expect(isError).toBe(true);
  expect(text).toContain("There is no thread thr_none");
  const broken = await client.call("run_deep_agent", { task: "x", thread_id: `thr\n${"n".repeat(150)}` });
  expect(broken.text).toMatch(/^There is no thread thr n{75}…\. Leave the thread out to start a new one\.$/);
});

test.each(CLIENT_KINDS)("%s: the same key and task give the same run", async (kind) => {
  const client = await connectTo(plainRuns(), kind);
  const args = { task: "x", idempotency_key: "k" };
  const first = await client.call("run_deep_agent", args);
  const second = await client.call("run_deep_agent", args);
  expect(second.structured["run_id"]).toBe(first.structured["run_id"]);
  expect(second.text).toContain("A call with this idempotency key came before: nothing was started again.");
  expect(first.text).not.toContain("idempotency");
  const other = await client.call("run_deep_agent", { ...args, task: "y" });
  expect(other).toMatchObject({ isError: true });
  expect(other.text).toBe(
    `This idempotency key was used before, for run ${String(first.structured["run_id"])} with another task, goal or thread. Use a new key for a new task.`,
  );
});

test.each(CLIENT_KINDS)("%s: a goal is judged, and the report has every verdict", async (kind) => {
  const judged = [findings(met, notMet("no letter")), findings(met, met)];
  const model = scriptedModel((request) => (isJudge(request) ? (judged.shift() ?? {}) : { text: "done" }));
  const { service } = openServer(databaseFile(), ({ goal }) => ({
    model,
    ...(goal === undefined ? {} : { goal: { criteria: goal } }),
  }));
  const client = await connect(depsFor(service), { kind });
  const goal = ["There is a report", "There is a letter"];
  const { structured, text } = await client.call("run_deep_agent", { task: "x", goal });
  expect(structured["goal"]).toEqual({
    outcome: "Goal met",
    round: 2,
    criteria: goal.map((criterion) => ({ criterion, ...met })),
  });
  expect(text).toContain("Goal met:\n- [x] met: There is a report\n- [x] met: There is a letter");
  const refused = await client.call("run_deep_agent", { task: "x", goal: [] });
  expect(refused).toMatchObject({
    isError: true,
    text: "No run was started. A goal needs at least one criterion.",
  });
});

test.each(CLIENT_KINDS)("%s: a task for a thread at work is a message to its run", async (kind) => {
  const model = scriptedModel(({ messages }): ScriptedReply => {
    if (messages.every(({ type }) => type !== "tool")) return { toolCalls: [note("a")] };
    return { text: messages.flatMap(({ type, text }) => (type === "human" ? [text] : [])).join(" | ") };
  });
  const params = { model, tools: [noteTool([])], interruptOn: { note: true } };
  const { service } = openServer(databaseFile(), params);
  const client = await connectTo(service, kind);
  const first = await client.call("run_deep_agent", { task: "the task" });
  expect(first.structured["status"]).toBe("input_required");
  const { run_id: id, thread_id: thread } = first.structured;
  const told = await client.call("run_deep_agent", { task: "more", thread_id: thread });
  expect(told).toMatchObject({ isError: false, structured: { run_id: id, status: "input_required" } });
  expect(told.text).toMatch(/^A run of this thread is not over, so this went to it as a message;/);
  await approve(service, String(id), "a");
  expect((await reach(service, String(id), "completed")).run.answer).toBe("the task | more");
});

test.each(CLIENT_KINDS)("%s: a failed run is an error with a stable reason", async (kind) => {
  const model = scriptedModel(() => {
    throw Object.assign(new Error("no such key"), { status: 401 });
  });
  const { service } = openServer(databaseFile(), { model });
  const client = await connectTo(service, kind);
  const { structured, text, isError } = await client.call("run_deep_agent", { task: "x" });
  expect(isError).toBe(true);
  expect(structured).toMatchObject({ status: "failed", failure_reason: "model_auth" });
  expect(text).toContain("failed (model_auth)");
});

test.each(CLIENT_KINDS)("%s: cancel tells the reason, and the run stays cancelled", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const client = await connectTo(service, kind);
  const { structured } = await client.call("run_deep_agent", { task: "x" });
  const id = structured["run_id"];
  const cancelled = await client.call("cancel_deep_agent", { run_id: id, reason: "changed my mind" });
  expect(cancelled).toMatchObject({ isError: false, structured: { status: "cancelled" } });
  expect(cancelled.text).toContain("changed my mind");
  expect((await client.call("check_deep_agent", { run_id: id })).structured).toMatchObject({
    status: "cancelled",
  });
  expect(notes).toEqual([]);
});

test.each(CLIENT_KINDS)("%s: a model may not answer unless the user allows it", async (kind) => {
  const { service, notes } = approvalRuns(note("a"), note("b"), note("c"));
  const strict = await connectTo(service, kind);
  const { structured } = await strict.call("run_deep_agent", { task: "x" });
  const id = String(structured["run_id"]);
  const approvals = (await reach(service, id, "input_required")).requests.filter(isApproval);
  const ids = approvals.map((approval) => approval.id);
  const answer = (index: number, decision: string, extra: object = {}) => ({
    run_id: id,
    approval_id: ids[index],
    decision,
    ...extra,
  });
  await expect(strict.call("answer_deep_agent", answer(0, "approve"))).rejects.toThrow("not found");

  const config = { approvals: { allowModelAnswers: true } };
  const allowed = await connect(depsFor(service, { config }), { kind });
  expect((await allowed.call("answer_deep_agent", answer(0, "edit"))).text).toContain("needs edited_args");
  const odd = await allowed.call("answer_deep_agent", answer(0, "approve", { edited_args: { text: "z" } }));
  expect(odd).toMatchObject({ isError: true });
  const wrong = await allowed.call("answer_deep_agent", answer(0, "edit", { edited_args: { txet: "z" } }));
  expect(wrong).toMatchObject({ isError: true });
  await allowed.call("answer_deep_agent", answer(0, "edit", { edited_args: { text: "z" } }));
  await allowed.call("answer_deep_agent", answer(1, "reject", { message: "no" }));
  await allowed.call("answer_deep_agent", answer(2, "approve"));
  await reach(service, id, "completed");
  expect([...notes].sort()).toEqual(["c", "z"]);
  const again = await allowed.call("answer_deep_agent", answer(2, "approve"));
  expect(again).toMatchObject({ isError: false, structured: { status: "completed" } });
  expect(again.text).toContain("This has already been decided: approved (answer_deep_agent).");
  const other = await allowed.call("answer_deep_agent", answer(1, "approve"));
  expect(other).toMatchObject({ isError: true });
  expect(other.text).toBe(
    "This has already been decided: rejected (answer_deep_agent). Your decision was not used; " +
      "check_deep_agent tells how the run stands.",
  );
  expect(notes).toHaveLength(2);
});

test.each(CLIENT_KINDS)("%s: an unexpected error has a reference in the log", async (kind) => {
  const lines: string[] = [];
  const deps = depsFor(() => Promise.reject(new Error("ENOENT /home/me/secret.sqlite")));
  const client = await connect(
    { ...deps, logger: createLogger("info", (line) => lines.push(line)) },
    { kind },
  );
  const { text, isError } = await client.call("check_deep_agent", { run_id: "run_1" });
  expect(isError).toBe(true);
  expect(text).not.toContain("secret");
  const reference = /[0-9a-f-]{36}/.exec(text)?.[0] ?? "none";
  expect(lines.join("")).toContain(reference);
  expect(lines.join("")).toContain("secret.sqlite");
});

test("a wrong configuration found on first use is told with its remedy", async () => {
  const deps = depsFor(() => Promise.reject(new ConfigurationError("x", "The data directory is read-only.")));
  const client = await connect(deps, { kind: "v2-modern" });
  const { text, isError } = await client.call("run_deep_agent", { task: "x" });
  expect({ text, isError }).toEqual({ text: "The data directory is read-only.", isError: true });
});

test.each(CLIENT_KINDS)("%s: a model is not told of rules, and never saves one", async (kind) => {
  const { service, notes } = ruledRuns("docs/a.md");
  const run = await startRun(service, "note it");
  const view = await reach(service, run.id, "input_required");
  const [asked] = view.requests.filter(isApproval);
  expect(asked?.ruled?.offers).not.toEqual([]);
  const config = { approvals: { allowModelAnswers: true } };
  const client = await connect(depsFor(service, { config }), { kind });
  const { structured } = await client.call("check_deep_agent", { run_id: run.id });
  expect(structured).toMatchObject({ approvals: [{ decisions: ["approve", "edit", "reject"] }] });
  const named = { run_id: run.id, approval_id: asked?.id };
  const rule = "Edit(/docs/a.md)";
  for (const more of [{}, { rule }, { rules: [rule] }, { message: rule }]) {
    const args = { ...named, decision: "approve_always", ...more };
    const { isError, text } = await client.call("answer_deep_agent", args);
    expect([isError, text]).toEqual([true, expect.stringContaining("decision:")]);
  }
  // What it may decide saves nothing.
  await client.call("answer_deep_agent", { ...named, decision: "approve", rule });
  expect(await mine(service).rules.list()).toEqual([]);
  expect(notes.length).toBeLessThanOrEqual(1);
});
