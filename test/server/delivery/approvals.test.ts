import { isApproval } from "../../../src/runs/run.ts";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { cleanUpWith, connect as connectDatabase, mine, note, reach } from "../../runs/support.ts";
import {
  CLIENT_KINDS,
  connectClient,
  type ClientKind,
  type Form,
  type FormAnswer,
} from "../../support/clients.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { httpConnector } from "../../support/harness-http.ts";
import { approvalRuns, connect, depsFor } from "../support.ts";

const approve: FormAnswer = { action: "accept", content: { decision: "approve" } };
const reject: FormAnswer = { action: "accept", content: { decision: "reject", message: "no, thanks" } };

/** A clock that a test can turn forward; nothing waits for it. */
function turnable() {
  let ahead = 0;
  return { clock: () => Date.now() + ahead, turn: (milliseconds: number) => void (ahead += milliseconds) };
}

/** Answers forms in turn, and keeps them. */
function person(...answers: ((form: Form) => FormAnswer)[]) {
  const forms: Form[] = [];
  const answer = (form: Form): FormAnswer => {
    const next = answers[forms.length];
    forms.push(form);
    if (next === undefined) throw new Error(`nobody expected form ${forms.length}: ${form.message}`);
    return next(form);
  };
  return { forms, answer };
}

const always = (answer: FormAnswer) => () => answer;

test.each(CLIENT_KINDS)("%s: an approved call runs once, in the run that the call started", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const { forms, answer } = person(always(approve));
  const client = await connect(depsFor(service), { kind, person: answer });
  const result = await client.call("run_deep_agent", { task: "note a" });
  expect(result).toMatchObject({ isError: false, structured: { status: "completed", answer: "noted a" } });
  expect(result.text).toContain("noted a");
  expect(notes).toEqual(["a"]);
  expect(forms.map(({ message }) => message)).toEqual([expect.stringContaining('"text": "a"')]);
  expect(await mine(service).read.list({ limit: 9 })).toHaveLength(1);
});

test.each(CLIENT_KINDS)("%s: a rejected call does not run, its sibling does", async (kind) => {
  const { service, notes } = approvalRuns(note("a"), note("b"));
  const { forms, answer } = person(
    ({ message }) => (message.includes('"a"') ? reject : approve),
    ({ message }) => (message.includes('"a"') ? reject : approve),
  );
  const client = await connect(depsFor(service), { kind, person: answer });
  const { structured } = await client.call("run_deep_agent", { task: "note a and b" });
  expect(structured).toMatchObject({ status: "completed", answer: "no, thanks; noted b" });
  expect(notes).toEqual(["b"]);
  expect(forms).toHaveLength(2);
});

test.each(CLIENT_KINDS)("%s: an edit runs, and is asked again if it cannot run", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const edit = (edited: string) =>
    always({ action: "accept", content: { decision: "edit", edited_args: edited } });
  const long = JSON.stringify({ text: "far more than twenty characters" });
  const edits = ["{ text", '{"txet":"b"}', long, '{"text":"b"}'];
  const { forms, answer } = person(...edits.map(edit));
  const client = await connect(depsFor(service), { kind, person: answer });
  const { structured } = await client.call("run_deep_agent", { task: "note a" });
  expect(structured).toMatchObject({ status: "completed" });
  expect(notes).toEqual(["b"]);
  expect(forms[1]?.message).toContain("not valid JSON");
  expect(forms[2]?.message).toMatch(/text/);
  expect(forms[3]?.message).toMatch(/text/);
});

test.each(CLIENT_KINDS)("%s: a closed form is asked again by the next check", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const { forms, answer } = person(always({ action: "cancel" }), always(approve));
  const client = await connect(depsFor(service), { kind, person: answer });
  const first = await client.call("run_deep_agent", { task: "note a" });
  expect(first).toMatchObject({ isError: false, structured: { status: "input_required" } });
  expect(first.structured["approvals"]).toMatchObject([{ tool: "note" }]);
  expect(forms).toHaveLength(1);
  const id = String(first.structured["run_id"]);
  await client.call("check_deep_agent", { run_id: id });
  await reach(service, id, "completed");
  expect(notes).toEqual(["a"]);
  expect(forms).toHaveLength(2);
});

test.each(CLIENT_KINDS)("%s: a decline rejects when a person had the time to read", async (kind) => {
  const { clock, turn } = turnable();
  const { service, notes } = approvalRuns(note("a"));
  const answer = (): FormAnswer => {
    turn(1500);
    return { action: "decline" };
  };
  const client = await connect(depsFor(service, { clock }), { kind, person: answer });
  const { structured } = await client.call("run_deep_agent", { task: "note a" });
  expect(structured).toMatchObject({ status: "completed", answer: "declined by the user" });
  expect(notes).toEqual([]);
});

test.each(CLIENT_KINDS)("%s: a client that declines by itself decides nothing", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const frozen = Date.now();
  const deps = depsFor(service, { clock: () => frozen });
  const { answer, forms } = person(always({ action: "decline" }));
  const client = await connect(deps, { kind, person: answer });
  const { structured } = await client.call("run_deep_agent", { task: "note a" });
  expect(structured).toMatchObject({ status: "input_required" });
  expect(forms).toHaveLength(1);
  expect(notes).toEqual([]);
});

test.each(CLIENT_KINDS)("%s: nonsense in a form decides nothing", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const answer = (): FormAnswer => ({ action: "accept", content: { decision: "" } });
  const client = await connect(depsFor(service), { kind, person: answer });
  const { structured } = await client.call("run_deep_agent", { task: "note a" });
  expect(structured).toMatchObject({ status: "input_required" });
  expect(notes).toEqual([]);
});

test.each(CLIENT_KINDS)("%s: without forms the call gives a handle and nothing is approved", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const client = await connect(depsFor(service), { kind });
  const { structured, text, raw } = await client.call("run_deep_agent", { task: "note a" });
  expect(structured).toMatchObject({ status: "input_required", next: { tool: "check_deep_agent" } });
  expect(text).toContain("cannot show an approval form");
  expect(text).toContain('"text": "a"');
  expect(raw).toMatchObject({ content: [{ type: "text" }] });
  const again = await client.call("check_deep_agent", { run_id: structured["run_id"], wait_seconds: 0 });
  expect(again.structured).toMatchObject({ status: "input_required" });
  expect(notes).toEqual([]);
});

/** A client whose person takes longer than the window of its calls, when they have got their handle. */
async function tooLate(kind: ClientKind, over: "memory" | "http") {
  const { service, notes, file } = approvalRuns(note("a"));
  const deps = depsFor(service, { config: { delivery: { window: 1 } } });
  const decided = deferred();
  let given: FormAnswer = { action: "cancel" };
  const answer = (response: FormAnswer): void => {
    given = response;
    decided.resolve();
  };
  const forms: Form[] = [];
  const person = async (form: Form): Promise<FormAnswer> => {
    forms.push(form);
    await decided.promise;
    return given;
  };
  const client =
    over === "memory"
      ? await connect(deps, { kind, person })
      : await connectClient(await httpConnector(deps, cleanUpWith), { kind, person });
  cleanUpWith(() => client.close());
  const { structured, isError } = await client.call("run_deep_agent", { task: "note a" });
  expect(isError).toBe(false);
  expect(structured).toMatchObject({ status: "input_required", approvals: [{ tool: "note" }] });
  return { service, client, notes, forms, answer, file, id: String(structured["run_id"]) };
}

test.each(["memory", "http"] as const)("2025 era, %s: a form that outlives its call counts", async (over) => {
  for (const kind of ["v1", "v2-legacy"] as const) {
    const { service, notes, forms, answer, id } = await tooLate(kind, over);
    expect(notes).toEqual([]);
    answer(approve);
    const approvals = (await reach(service, id, "completed")).requests.filter(isApproval);
    expect(approvals).toMatchObject([{ status: "approved", decidedBy: "elicitation" }]);
    expect(notes).toEqual(["a"]);
    expect(forms).toHaveLength(1);
  }
});

test("2025 era: a later call waits for the form that is open, and shows no second one", async () => {
  const { client, notes, forms, answer, id } = await tooLate("v1", "memory");
  await client.call("check_deep_agent", { run_id: id });
  const checking = client.call("check_deep_agent", { run_id: id });
  answer(approve);
  await checking;
  await expect.poll(() => notes).toEqual(["a"]);
  expect(forms).toHaveLength(1);
});

test("2025 era: an answer that is too late is refused, and an event says so", async () => {
  const { service, notes, answer, file, id } = await tooLate("v1", "memory");
  const [approval] = (await mine(service).read.view(id))?.requests.filter(isApproval) ?? [];
  // As another process does it, of which this one hears later than of the answer.
  connectDatabase(file)
    .prepare("UPDATE questions SET status = 'rejected', decided_at = 1, decided_by = 'terminal' WHERE id = ?")
    .run(approval?.id);
  answer(approve);
  await expect
    .poll(
      async () =>
        (await mine(service).read.events(id))?.findLast(({ kind }) => kind === "answer_refused")?.data,
    )
    .toEqual({ reason: "decided before" });
  expect(notes).toEqual([]);
});

test("2025 era: an answer that comes too late to be asked for again is refused, and an event says so", async () => {
  const { service, answer, id } = await tooLate("v1", "memory");
  answer({ action: "accept", content: { decision: "edit", edited_args: "{broken" } });
  await expect
    .poll(
      async () =>
        (await mine(service).read.events(id))?.findLast(({ kind }) => kind === "answer_refused")?.data,
    )
    .toMatchObject({ reason: expect.stringContaining("not valid JSON") });
  expect((await mine(service).read.view(id))?.run.status).toBe("input_required");
});

test.each(["codex-mcp-client", "test-client"])("2025 era: %s stops its clock for forms", async (name) => {
  const { service, notes } = approvalRuns(note("a"));
  const known = name === "codex-mcp-client" ? {} : { [name]: { pausesForForms: true } };
  const deps = depsFor(service, { config: { delivery: { window: 1, clients: known } } });
  const person = async (): Promise<FormAnswer> => {
    await delay(2500);
    return approve;
  };
  const client = await connect(deps, { kind: "v1", name, person });
  const { text } = await client.call("run_deep_agent", { task: "note a" });
  expect(text).toMatch(/^noted a\n\nRun \S+ completed/);
  expect(notes).toEqual(["a"]);
});

test("2025 era: a decision made elsewhere takes the open form back and the call goes on", async () => {
  const { service, notes } = approvalRuns(note("a"));
  const client = await connect(depsFor(service), {
    kind: "v1",
    person: async () => {
      const [run] = await mine(service).read.list({ limit: 1 });
      const view = await mine(service).read.view(run?.id ?? "");
      await mine(service).requests.answer(
        run?.id ?? "",
        { requestId: view?.requests.filter(isApproval)[0]?.id ?? "", answer: { type: "approve" } },
        "elsewhere",
      );
      return new Promise<FormAnswer>(() => {});
    },
  });
  const { structured } = await client.call("run_deep_agent", { task: "note a" });
  expect(structured).toMatchObject({ status: "completed", answer: "noted a" });
  expect(notes).toEqual(["a"]);
});
