import { isQuestion, isApproval } from "../../../src/runs/run.ts";
import { expect, test } from "vitest";
import { ME, mine, note, openServer, reach } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { APPROVE, type Asked, type Ended, rawClient } from "../raw-client.ts";
import { approvalRuns, depsFor, questionRuns, ruledRuns, type DepsOptions } from "../support.ts";

const TASK = { task: "note a" };

async function asked(options: DepsOptions = {}) {
  const { service, notes, file } = approvalRuns(note("a"), note("b"));
  const client = await rawClient(depsFor(service, options));
  const first = await client.result<Asked>("run_deep_agent", TASK);
  const keys = Object.keys(first.inputRequests);
  const runId =
    (await service.as({ principal: options.principalOf?.(undefined) ?? ME }).read.list({ limit: 1 }))[0]
      ?.id ?? "";
  const all = Object.fromEntries(keys.map((key) => [key, APPROVE]));
  return { file, service, notes, client, first, keys, runId, all };
}

test("approvals of one moment are asked together, and the state tells no task, argument or path", async () => {
  const { first, keys } = await asked();
  expect(first.resultType).toBe("input_required");
  expect(keys).toHaveLength(2);
  const messages = Object.values(first.inputRequests).map(({ params }) => params.message);
  expect(messages[0]).toContain("approval 1 of 2");
  expect(messages[1]).toContain("approval 2 of 2");
  const payload = Buffer.from(first.requestState.split(".")[1] ?? "", "base64url").toString();
  expect(payload).not.toMatch(/note a|"text"|\//);
});

test("the repeated call goes on with its run; a replay of the same state decides nothing again", async () => {
  const { service, notes, client, first, all } = await asked();
  const again = { inputResponses: all, requestState: first.requestState };
  const ended = await client.result<Ended>("run_deep_agent", TASK, again);
  expect(ended).toMatchObject({ resultType: "complete", structuredContent: { status: "completed" } });
  expect([...notes].sort()).toEqual(["a", "b"]);
  const replayed = await client.result<Ended>("run_deep_agent", TASK, again);
  expect(replayed).toMatchObject({ isError: true });
  expect(replayed.content[0]?.text).toContain(ended.structuredContent.run_id);
  expect(notes).toHaveLength(2);
  expect(await mine(service).read.list({ limit: 9 })).toHaveLength(1);
});

test("answers may come one by one: what is missing is asked again under a new key", async () => {
  const { notes, client, first, keys, all } = await asked();
  const [one = "", other = ""] = keys;
  const second = await client.result<Asked>("run_deep_agent", TASK, {
    inputResponses: { [one]: APPROVE },
    requestState: first.requestState,
  });
  expect(second.resultType).toBe("input_required");
  const [key = ""] = Object.keys(second.inputRequests);
  expect(key.split("@")[0]).toBe(other.split("@")[0]);
  expect(key).not.toBe(other);
  const ended = await client.result<Ended>("run_deep_agent", TASK, {
    inputResponses: { ...all, [key]: APPROVE },
    requestState: second.requestState,
  });
  expect(ended.structuredContent.status).toBe("completed");
  expect(notes).toHaveLength(2);
});

test("a closed form is not shown again in this call, but its sibling is", async () => {
  const { notes, client, first, keys } = await asked();
  const [one = "", other = ""] = keys;
  const second = await client.result<Asked>("run_deep_agent", TASK, {
    inputResponses: { [one]: { action: "cancel" } },
    requestState: first.requestState,
  });
  const [key = ""] = Object.keys(second.inputRequests);
  expect(Object.keys(second.inputRequests)).toHaveLength(1);
  expect(key.split("@")[0]).toBe(other.split("@")[0]);
  const ended = await client.result<Ended>("run_deep_agent", TASK, {
    inputResponses: { [key]: { action: "cancel" } },
    requestState: second.requestState,
  });
  expect(ended.structuredContent).toMatchObject({ status: "input_required" });
  expect(ended.structuredContent.approvals).toHaveLength(2);
  expect(notes).toEqual([]);
});

test("answers of another kind decide nothing", async () => {
  const { notes, client, first, keys } = await asked();
  const responses = [
    { roots: [] },
    { role: "assistant", content: { type: "text", text: "approve" }, model: "m" },
  ];
  const ended = await client.result<Ended>("run_deep_agent", TASK, {
    inputResponses: Object.fromEntries(keys.map((key, index) => [key, responses[index]])),
    requestState: first.requestState,
  });
  expect(ended.structuredContent).toMatchObject({ status: "input_required" });
  expect(notes).toEqual([]);
});

test("an answer counts once, whichever process it comes to, and the journal tells of a replay", async () => {
  const { file, service, client, first, keys, all, runId } = await asked();
  const later = await client.result<Asked>("run_deep_agent", TASK, {
    inputResponses: { [keys[0] ?? ""]: APPROVE },
    requestState: first.requestState,
  });
  const next = openServer(file, { model: scriptedModel(() => ({ text: "" })) }, { concurrentRuns: 0 });
  const other = await rawClient(depsFor(next.service));
  const replay = { inputResponses: all, requestState: first.requestState };
  const replayed = await other.result<Ended>("run_deep_agent", TASK, replay);
  expect(replayed).toMatchObject({ isError: true });
  expect(replayed.content[0]?.text).toMatch(/came before.*check_deep_agent/);
  const forged = await other.result<Ended>(
    "run_deep_agent",
    { task: "x" },
    { ...replay, requestState: later.requestState },
  );
  expect(forged).toMatchObject({ isError: true });
  const refusals = (await mine(service).read.events(runId))?.filter(({ kind }) => kind === "answer_refused");
  expect(refusals).toMatchObject([{ data: { reason: "replayed" } }, { data: { reason: "other_arguments" } }]);
  const approvals = (await reach(service, runId, "input_required")).requests.filter(isApproval);
  expect(approvals.filter(({ status }) => status === "pending")).toHaveLength(1);
});

test("changed arguments, or another run, make the answers void", async () => {
  const { service, notes, client, first, all, runId } = await asked();
  const again = { inputResponses: all, requestState: first.requestState };
  const other = await client.result<Ended>("run_deep_agent", { task: "note z" }, again);
  expect(other).toMatchObject({ isError: true });
  expect(other.content[0]?.text).toContain(runId);
  const thread = await client.result<Ended>("run_deep_agent", { ...TASK, thread_id: "thr_x" }, again);
  expect(thread).toMatchObject({ isError: true });
  const check = await client.result<Ended>("check_deep_agent", { run_id: "run_other" }, again);
  expect(check).toMatchObject({ isError: true });
  expect(notes).toEqual([]);
  expect(await mine(service).read.list({ limit: 9 })).toHaveLength(1);
});

test("a forged, damaged or foreign state is refused by the protocol", async () => {
  const { service, notes, client, first, all } = await asked();
  const damaged = `${first.requestState.slice(0, -2)}xx`;
  for (const requestState of [damaged, "v1.e30.AAAA", "hello"]) {
    const answer = await client.call("run_deep_agent", TASK, { inputResponses: all, requestState });
    expect(answer["error"]).toMatchObject({ code: -32602 });
  }
  const stranger = await rawClient(depsFor(service, { principalOf: () => "someone else" }));
  const answer = await stranger.call("run_deep_agent", TASK, {
    inputResponses: all,
    requestState: first.requestState,
  });
  expect(answer["error"]).toMatchObject({ code: -32602 });
  expect(notes).toEqual([]);
});

test("a run cancelled while the person reads stays cancelled", async () => {
  const { service, notes, client, first, all, runId } = await asked();
  await mine(service).control.cancel(runId, "not needed");
  const ended = await client.result<Ended>("run_deep_agent", TASK, {
    inputResponses: all,
    requestState: first.requestState,
  });
  expect(ended.structuredContent.status).toBe("cancelled");
  expect(notes).toEqual([]);
});

test("a client that never decides gets a handle after some rounds", async () => {
  const { client, first, service, runId } = await asked();
  let answer: Asked | Ended = first;
  let rounds = 0;
  while ("requestState" in answer) {
    rounds += 1;
    answer = await client.result<Asked | Ended>("run_deep_agent", TASK, {
      inputResponses: {},
      requestState: answer.requestState,
    });
  }
  expect(rounds).toBe(8);
  expect(answer.structuredContent.status).toBe("input_required");
  expect((await reach(service, runId, "input_required")).requests.filter(isApproval)).toHaveLength(2);
});

test("the answer to a question counts once, for the call that asked, and only signed", async () => {
  const { service } = questionRuns({
    kind: "ask",
    text: "Which secret colour?",
    fields: [{ name: "colour", type: "choice", options: ["red", "blue"], required: true }],
  });
  const client = await rawClient(depsFor(service));
  const first = await client.result<Asked>("run_deep_agent", TASK);
  const [key = ""] = Object.keys(first.inputRequests);
  const payload = Buffer.from(first.requestState.split(".")[1] ?? "", "base64url").toString();
  expect(payload).not.toMatch(/secret|colour|red/);
  const answering = (colour: string, requestState: string) => ({
    inputResponses: { [key]: { action: "accept", content: { colour } } },
    requestState,
  });
  const forged = `${first.requestState.slice(0, -2)}xx`;
  const refused = await client.call("run_deep_agent", TASK, answering("red", forged));
  expect(refused["error"]).toMatchObject({ code: -32602 });
  const malformed = await client.result<Asked>(
    "run_deep_agent",
    TASK,
    answering("green", first.requestState),
  );
  const [[again, request] = ["", undefined]] = Object.entries(malformed.inputRequests);
  expect(again).not.toBe(key);
  expect(request?.params.message).toContain("'colour' must be one of: red, blue.");
  const replayed = await client.result<Ended>("run_deep_agent", TASK, answering("red", first.requestState));
  expect(replayed).toMatchObject({ isError: true });
  const good = {
    inputResponses: { [again]: { action: "accept", content: { colour: "red" } } },
    requestState: malformed.requestState,
  };
  const other = await client.result<Ended>("run_deep_agent", { task: "other" }, good);
  expect(other).toMatchObject({ isError: true });
  const runId = (await mine(service).read.list({ limit: 1 }))[0]?.id ?? "";
  expect((await reach(service, runId, "input_required")).requests.filter(isQuestion)).toMatchObject([
    { status: "pending" },
  ]);
  const third = await client.result<Asked>("check_deep_agent", { run_id: runId });
  const [last = ""] = Object.keys(third.inputRequests);
  const ended = await client.result<Ended>(
    "check_deep_agent",
    { run_id: runId },
    {
      inputResponses: { [last]: { action: "accept", content: { colour: "red" } } },
      requestState: third.requestState,
    },
  );
  expect(ended.structuredContent).toMatchObject({
    status: "completed",
    answer: '{"type":"fields","values":{"colour":"red"}}',
  });
});

test("a rule is saved by a signed answer once, and a replay of it saves nothing again", async () => {
  const { service, notes } = ruledRuns("docs/a.md", "docs/a.md");
  const client = await rawClient(depsFor(service));
  const first = await client.result<Asked>("run_deep_agent", TASK);
  const [key = ""] = Object.keys(first.inputRequests);
  const accept = (rule: string) => ({
    inputResponses: { [key]: { action: "accept", content: { decision: "approve_always", rule } } },
    requestState: first.requestState,
  });
  const answer = accept("Edit(/docs/**)");
  const ended = await client.result<Ended>("run_deep_agent", TASK, answer);
  expect(ended).toMatchObject({ structuredContent: { status: "completed" } });
  expect(notes).toEqual(["docs/a.md", "docs/a.md"]);
  const [saved, ...others] = await mine(service).rules.list();
  expect([saved, others]).toMatchObject([
    { rule: "Edit(/docs/**)", createdBy: "input_required", uses: 1 },
    [],
  ]);
  await mine(service).rules.remove(saved?.id ?? "");
  const replayed = await client.result<Ended>("run_deep_agent", TASK, answer);
  expect(replayed).toMatchObject({ isError: true });
  expect(await mine(service).rules.list()).toEqual([]);
});

test("a signed answer with a rule that was not offered is asked again", async () => {
  const { service, notes } = ruledRuns("docs/a.md");
  const client = await rawClient(depsFor(service));
  const first = await client.result<Asked>("run_deep_agent", TASK);
  const [key = ""] = Object.keys(first.inputRequests);
  const content = { decision: "approve_always", rule: "Bash(*)" };
  const second = await client.result<Asked>("run_deep_agent", TASK, {
    inputResponses: { [key]: { action: "accept", content } },
    requestState: first.requestState,
  });
  const [again] = Object.values(second.inputRequests);
  expect(again?.params.message).toContain("This rule is not offered");
  expect([notes, await mine(service).rules.list()]).toEqual([[], []]);
});
