import { isApproval, isQuestion } from "../../../src/runs/run.ts";
import {
  CancelTaskResultV2Schema,
  CreateTaskResultV2Schema,
  GetTaskResultV2Schema,
  UpdateTaskResultV2Schema,
} from "@modelcontextprotocol/ext-tasks/core/v2";
import { tool } from "@langchain/core/tools";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { RunService } from "../../../src/runs/service.ts";
import {
  approve,
  calling,
  databaseFile,
  mine,
  note,
  noteTool,
  openServer,
  reach,
} from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { approvalRuns, connect, depsFor, plainRuns, questionRuns, type DepsOptions } from "../support.ts";
import { FORMS, overHttp, overMemory, TASKS, type Reply, type Rpc } from "./raw.ts";
import { attempts } from "../../support/effort.ts";

const TRANSPORTS = { memory: overMemory, http: overHttp };
const accept = (content: object) => ({ action: "accept", content });
const APPROVE = accept({ decision: "approve" });

const open = (transport: keyof typeof TRANSPORTS, service: RunService, options: DepsOptions = {}) =>
  TRANSPORTS[transport](depsFor(service, options));

async function create(rpc: Rpc, task = "note a", capabilities?: object): Promise<string> {
  const { result } = await rpc("tools/call", { name: "run_deep_agent", arguments: { task } }, capabilities);
  return CreateTaskResultV2Schema.parse(result).taskId;
}

async function get(rpc: Rpc, taskId: string, capabilities?: object) {
  const { result } = await rpc("tasks/get", { taskId }, capabilities);
  return { task: GetTaskResultV2Schema.parse(result), raw: result ?? {} };
}

async function update(rpc: Rpc, taskId: string, inputResponses: object): Promise<void> {
  const { result } = await rpc("tasks/update", { taskId, inputResponses });
  expect(UpdateTaskResultV2Schema.parse(result)).toBeDefined();
}

interface Questions {
  inputRequests: Record<string, { method: string; params: { mode: string; message: string } }>;
}

/** Keys and messages of what the task asks now. */
async function questions(rpc: Rpc, taskId: string): Promise<[key: string, message: string][]> {
  const { raw } = await get(rpc, taskId);
  const { inputRequests } = raw as unknown as Questions; // its form was checked when it was read
  return Object.entries(inputRequests).map(([key, { params }]) => [key, params.message]);
}

const METHODS = ["tasks/get", "tasks/update", "tasks/cancel"];

describe.each(["memory", "http"] as const)("over %s", (transport) => {
  test("a call answers with a task at once, and the task ends with what the call would have returned", async () => {
    const service = plainRuns("all done");
    const rpc = await open(transport, service);
    const { result } = await rpc("tools/call", { name: "run_deep_agent", arguments: { task: "go" } });
    const created = CreateTaskResultV2Schema.parse(result);
    expect(created.ttlMs).toBeNull();
    expect(result).not.toHaveProperty("requestState");
    expect(result).toMatchObject({ structuredContent: { run_id: created.taskId } });
    await reach(service, created.taskId, "completed");
    const { raw } = await get(rpc, created.taskId);
    expect(raw).toMatchObject({
      resultType: "complete",
      status: "completed",
      result: { isError: false, structuredContent: { status: "completed", answer: "all done" } },
    });
  });

  test("questions stay the same until they are answered, in parts and in any order", async () => {
    const { service, notes } = approvalRuns(note("a"), note("b"));
    const rpc = await open(transport, service);
    const taskId = await create(rpc);
    await reach(service, taskId, "input_required");
    await expect.poll(() => questions(rpc, taskId)).toHaveLength(2);
    const first = await questions(rpc, taskId);
    expect(await questions(rpc, taskId)).toEqual(first);
    const [a = ["", ""], b = ["", ""]] = first;
    await update(rpc, taskId, { [b[0]]: APPROVE, "nobody:0@zz": APPROVE });
    expect((await questions(rpc, taskId)).map(([key]) => key)).toEqual([a[0]]);
    // An answered key is ignored.
    await update(rpc, taskId, { [b[0]]: accept({ decision: "reject" }), [a[0]]: APPROVE });
    await reach(service, taskId, "completed");
    expect(notes.toSorted()).toEqual(["a", "b"]);
    const approvals = ((await mine(service).read.view(taskId)) ?? { requests: [] }).requests.filter(
      isApproval,
    );
    expect(approvals.map(({ status, decidedBy }) => [status, decidedBy])).toEqual([
      ["approved", "tasks/update"],
      ["approved", "tasks/update"],
    ]);
  });

  test("cancel is acknowledged, also twice, and shows on the next get", async () => {
    const { service } = approvalRuns(note("a"));
    const rpc = await open(transport, service);
    const taskId = await create(rpc);
    await reach(service, taskId, "input_required");
    for (const _time of [1, 2]) {
      const { result } = await rpc("tasks/cancel", { taskId });
      expect(CancelTaskResultV2Schema.parse(result)).toBeDefined();
    }
    const { task, raw } = await get(rpc, taskId);
    expect(task).toMatchObject({ status: "cancelled", statusMessage: "cancelled by the client" });
    expect(raw).not.toHaveProperty("result");
  });

  test.each(METHODS)("%s refuses unknown and foreign tasks in the same words", async (method) => {
    const service = plainRuns();
    const mine = await service.as({ principal: "someone else" }).control.start({ task: "secret" });
    const foreign = mine.ok ? mine.run.id : "";
    const rpc = await open(transport, service);
    const unknown = await rpc(method, { taskId: "run_unknown" });
    expect(unknown.error?.code).toBe(-32_602);
    expect((await rpc(method, { taskId: foreign })).error).toEqual(unknown.error);
    const view = await reachAs(service, "someone else", foreign);
    expect(view?.run.status).toBe("completed");
  });

  test.each(METHODS)("%s refuses clients without tasks", async (method) => {
    const service = plainRuns();
    const rpc = await open(transport, service);
    const taskId = await create(rpc);
    const reply: Reply = await rpc(method, { taskId }, FORMS);
    expect(reply.error).toMatchObject({
      code: -32_021,
      data: { requiredCapabilities: { extensions: TASKS } },
    });
    if (transport === "http") expect(reply.status).toBe(400);
  });

  test.each(["tasks/list", "tasks/result"])("%s does not exist", async (method) => {
    const rpc = await open(transport, plainRuns());
    expect((await rpc(method, { taskId: "run_1" })).error?.code).toBe(-32_601);
  });
});

async function reachAs(service: RunService, principal: string, runId: string) {
  for await (const _event of service
    .as({ principal })
    .watch.events(runId, { signal: new AbortController().signal }));
  return service.as({ principal }).read.view(runId);
}

test("a client that does not declare tasks waits for the result, and tasks are announced to modern clients", async () => {
  const rpc = await open("memory", plainRuns("done"));
  const call = { name: "run_deep_agent", arguments: { task: "go" } };
  expect((await rpc("tools/call", call, FORMS)).result).toMatchObject({ resultType: "complete" });
  const { result } = await rpc("server/discover", {});
  expect(result).toMatchObject({ capabilities: { extensions: TASKS } });
});

test("2025-era clients see nothing of tasks", async () => {
  const client = await connect(depsFor(plainRuns("done")), { kind: "v2-legacy" });
  const { raw, structured } = await client.call("run_deep_agent", { task: "go" });
  expect(raw).not.toHaveProperty("resultType");
  expect(structured).toMatchObject({ status: "completed" });
});

test("a run that fails is a completed task with an error result", async () => {
  const { service } = openServer(databaseFile(), {
    model: scriptedModel(() => {
      throw new Error("no such model");
    }),
  });
  const rpc = await open("memory", service);
  const taskId = await create(rpc);
  await reach(service, taskId, "failed");
  const { raw } = await get(rpc, taskId);
  expect(raw).toMatchObject({ status: "completed", result: { isError: true } });
});

test("the task of a client without forms ends with the handle that other clients get, and stays ended", async () => {
  const { service, notes } = approvalRuns(note("a"));
  const rpc = await open("memory", service);
  const capabilities = { extensions: TASKS };
  const taskId = await create(rpc, "note a", capabilities);
  await reach(service, taskId, "input_required");
  const { task, raw } = await get(rpc, taskId, capabilities);
  expect(task).toMatchObject({
    status: "completed",
    statusMessage: expect.stringContaining(`deepagent-mcp runs open ${taskId}`),
    result: {
      isError: false,
      structuredContent: {
        run_id: taskId,
        status: "input_required",
        message: expect.stringContaining(`deepagent-mcp runs open ${taskId}`),
        approvals: [{ tool: "note" }],
        next: { tool: "check_deep_agent" },
      },
    },
  });
  expect(raw).not.toHaveProperty("inputRequests");
  expect(notes).toEqual([]);
  await approve(service, taskId, "a");
  await reach(service, taskId, "completed");
  expect((await get(rpc, taskId, capabilities)).task).toMatchObject({
    status: "completed",
    result: { structuredContent: { status: "completed", answer: "noted a" } },
  });
});

test("an answer that cannot be carried out is asked again under a new key, and the old key is dead", async () => {
  const { service, notes } = approvalRuns(note("a"));
  const rpc = await open("memory", service);
  const taskId = await create(rpc);
  await reach(service, taskId, "input_required");
  const [[first] = [""]] = await questions(rpc, taskId);
  await update(rpc, taskId, { [first]: accept({ decision: "edit", edited_args: "{broken" }) });
  const [[second, message] = ["", ""]] = await questions(rpc, taskId);
  expect(second).not.toBe(first);
  expect(message).toContain("not valid JSON");
  await update(rpc, taskId, { [first]: APPROVE });
  expect(notes).toEqual([]);
  await update(rpc, taskId, { [second]: accept({ decision: "edit", edited_args: '{"text":"changed"}' }) });
  await reach(service, taskId, "completed");
  expect(notes).toEqual(["changed"]);
});

test.each([{ action: "cancel" }, { action: "decline" }, { action: "nonsense" }])(
  "%j faster than anyone reads is asked again",
  async (response) => {
    let now = 1_000_000;
    const { service } = approvalRuns(note("a"));
    const rpc = await open("memory", service, { clock: () => (now += 1) });
    const taskId = await create(rpc);
    await reach(service, taskId, "input_required");
    const [[key] = [""]] = await questions(rpc, taskId);
    await update(rpc, taskId, { [key]: response });
    const [[next, message] = ["", ""]] = await questions(rpc, taskId);
    expect(next).not.toBe(key);
    expect(message).toContain("came back without an answer");
    const { task } = await get(rpc, taskId);
    expect(task.statusMessage).toContain("Asked again: the form came back without an answer");
    // The client has answered the old key already.
    await update(rpc, taskId, { [key]: APPROVE });
    expect((await questions(rpc, taskId)).map(([other]) => other)).toEqual([next]);
    await update(rpc, taskId, { [next]: APPROVE });
    await reach(service, taskId, "completed");
  },
);

test("a person who takes the time to decline has rejected", async () => {
  let now = 1_000_000;
  const { service, notes } = approvalRuns(note("a"));
  const rpc = await open("memory", service, { clock: () => (now += 2000) });
  const taskId = await create(rpc);
  await reach(service, taskId, "input_required");
  const [[key] = [""]] = await questions(rpc, taskId);
  await update(rpc, taskId, { [key]: { action: "decline" } });
  await reach(service, taskId, "completed");
  expect(notes).toEqual([]);
});

test("another process finds the task, asks under a key of its own, and takes answers to the old one", async () => {
  const file = databaseFile();
  const notes: string[] = [];
  const agent = () => ({ model: calling(note("a")), tools: [noteTool(notes)], interruptOn: { note: true } });
  const first = openServer(file, agent());
  const before = await open("memory", first.service);
  const taskId = await create(before);
  await reach(first.service, taskId, "input_required");
  const [[old] = [""]] = await questions(before, taskId);
  await first.service.close();
  const second = openServer(file, agent());
  const after = await open("memory", second.service);
  const [[fresh] = [""]] = await questions(after, taskId);
  expect(fresh).not.toBe(old);
  await update(after, taskId, { [old]: APPROVE });
  await reach(second.service, taskId, "completed");
  expect(notes).toEqual(["a"]);
});

test("answers that are not what the form asks for decide nothing, whatever they are", async () => {
  const { service, notes } = approvalRuns(note("a"));
  const rpc = await open("memory", service);
  const taskId = await create(rpc);
  await reach(service, taskId, "input_required");
  const word = fc.constantFrom("", "approve ", "APPROVE", "yes", "__proto__", "accept", "edit");
  const response = fc.oneof(
    fc.jsonValue(),
    fc.record({ action: fc.constantFrom("accept", "decline", "cancel", "approve", 1, null), content: word }),
    fc.record({
      action: fc.constant("accept"),
      content: fc.record({ decision: fc.oneof(word, fc.jsonValue()) }),
    }),
  );
  const key = fc.constantFrom("current", "id", "later", "junk");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(key, response), { maxLength: 4 }), async (given) => {
      const [[current] = [""]] = await questions(rpc, taskId);
      const [id = ""] = current.split("@");
      const names = { current, id, later: `${id}@zzzzzzzzzz`, junk: `${current}x@1` };
      const inputResponses = Object.fromEntries(given.map(([name, value]) => [names[name], value]));
      await rpc("tasks/update", { taskId, inputResponses });
      // Even an approval counts only under a key that was asked.
      await update(rpc, taskId, { [id]: APPROVE, [names.later]: APPROVE, [names.junk]: APPROVE });
      expect((await mine(service).read.view(taskId))?.run.status).toBe("input_required");
    }),
    attempts(150),
  );
  expect(notes).toEqual([]);
});

test("a call that does not fit a form is handed to the page by the same link on every poll, and is not approved", async () => {
  const kept: string[] = [];
  const keep = tool(({ text }) => `kept ${kept.push(text)}`, {
    name: "keep",
    description: "Keeps a text.",
    schema: z.object({ text: z.string() }),
  });
  const { service } = openServer(databaseFile(), {
    model: calling({ name: "keep", args: { text: `${"x".repeat(20_000)}HIDDEN` } }),
    tools: [keep],
    interruptOn: { keep: true },
  });
  const rpc = await open("memory", service, { page: true });
  const taskId = await create(rpc, "keep it");
  await reach(service, taskId, "input_required");
  const [asked] = await questions(rpc, taskId);
  expect(asked?.[1]).toMatch(
    /cannot approve it\. To see all of it and decide, open http:\S+; the run waits\./,
  );
  expect(await questions(rpc, taskId)).toEqual([asked]);
  await update(rpc, taskId, { [asked?.[0] ?? ""]: APPROVE });
  const [again] = await questions(rpc, taskId);
  expect(again?.[0]).not.toBe(asked?.[0]);
  expect(again?.[1]).toContain("did not show the whole call");
  expect(kept).toEqual([]);
  expect((await mine(service).read.view(taskId))?.run.status).toBe("input_required");
});

describe("questions that are not about approval", () => {
  const SIZE = {
    kind: "ask" as const,
    text: "Which size?",
    fields: [{ name: "size", type: "number" as const, required: true as const }],
  };

  test("are input requests; an answer that does not fit is asked for again, with the reason", async () => {
    const { service } = questionRuns(SIZE);
    const rpc = await open("memory", service);
    const taskId = await create(rpc);
    const asked = (await reach(service, taskId, "input_required")).requests.filter(isQuestion);
    const [[key, message] = ["", ""]] = await questions(rpc, taskId);
    expect(key.startsWith(`${asked[0]?.id}@`)).toBe(true);
    expect(message).toMatch(/^The main agent asks:\n\n {4}Which size\?/);
    await update(rpc, taskId, { [key]: accept({ size: "large" }) });
    const [[next, again] = ["", ""]] = await questions(rpc, taskId);
    expect(next).not.toBe(key);
    expect(again).toMatch(/^'size' must be a number\./);
    // The client has answered the old key already.
    await update(rpc, taskId, { [key]: accept({ size: 1 }) });
    await update(rpc, taskId, { [next]: accept({ size: 44 }) });
    const { run, requests } = await reach(service, taskId, "completed");
    const answered = requests.filter(isQuestion);
    expect(run.answer).toBe('{"type":"fields","values":{"size":44}}');
    expect(answered).toMatchObject([{ status: "answered", decidedBy: "tasks/update" }]);
  });

  test.each([{ action: "decline" }, { action: "cancel" }, accept({})])(
    "%j faster than anyone reads answers nothing",
    async (response) => {
      let now = 1_000_000;
      const { service } = questionRuns(SIZE, { clock: () => now });
      const rpc = await open("memory", service, { clock: () => (now += 1) });
      const taskId = await create(rpc);
      await reach(service, taskId, "input_required");
      const [[key] = [""]] = await questions(rpc, taskId);
      await update(rpc, taskId, { [key]: response });
      const [[next] = [""]] = await questions(rpc, taskId);
      expect(next).not.toBe(key);
      now += 2000;
      await update(rpc, taskId, { [next]: { action: "decline" } });
      const { run } = await reach(service, taskId, "completed");
      expect(run.answer).toBe('{"type":"decline"}');
    },
  );

  test("end the task of a client without forms with a handle that lists them", async () => {
    const { service } = questionRuns(SIZE);
    const rpc = await open("memory", service);
    const capabilities = { extensions: TASKS };
    const taskId = await create(rpc, "ask", capabilities);
    await reach(service, taskId, "input_required");
    const { raw } = await get(rpc, taskId, capabilities);
    expect(raw).toMatchObject({
      status: "completed",
      statusMessage: expect.stringContaining(`deepagent-mcp runs open ${taskId}`),
      result: {
        structuredContent: {
          status: "input_required",
          questions: [{ text: "Which size?", status: "pending" }],
        },
      },
    });
  });
});
