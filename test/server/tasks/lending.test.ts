import { setImmediate as nextTurn } from "node:timers/promises";
import { CreateTaskResultV2Schema, GetTaskResultV2Schema } from "@modelcontextprotocol/ext-tasks/core/v2";
import { expect, test } from "vitest";
import { ClientModel } from "../../../src/agent/models/client-model.ts";
import { databaseFile, FAST, ME, noteTool, openServer, reach } from "../../runs/support.ts";
import { depsFor } from "../support.ts";
import { FORMS, overHttp, overMemory, type Rpc, TASKS } from "./raw.ts";

const LENDING = { ...FORMS, extensions: TASKS, sampling: { tools: {} } };
const says = (text: string) => ({
  role: "assistant",
  model: "lent-1",
  stopReason: "endTurn",
  content: { type: "text", text },
});
const notes = (text: string) => ({
  role: "assistant",
  model: "lent-1",
  stopReason: "toolUse",
  content: [{ type: "tool_use", id: "use_1", name: "note", input: { text } }],
});

interface Asked {
  method: string;
  params: { messages?: { role: string }[]; message?: string };
}

/** A server that works with its clients' model, one gated tool, and a task of a client that lends it. */
async function open(transport: (deps: ReturnType<typeof depsFor>) => Promise<Rpc>, lendMs: number) {
  const noted: string[] = [];
  const { service } = openServer(
    databaseFile(),
    (_run, lender) => ({
      model: new ClientModel(lender),
      tools: [noteTool(noted)],
      interruptOn: { note: true },
    }),
    { timing: { ...FAST, lendMs } },
  );
  const rpc = await transport(depsFor(service, { config: { model: "client" } }));
  const call = { name: "run_deep_agent", arguments: { task: "note a" } };
  const { result } = await rpc("tools/call", call, LENDING);
  const { taskId } = CreateTaskResultV2Schema.parse(result);
  const get = async (capabilities: object = LENDING) => {
    const { result } = await rpc("tasks/get", { taskId }, capabilities);
    GetTaskResultV2Schema.parse(result);
    return result as { status: string; inputRequests?: Record<string, Asked>; pollIntervalMs: number };
  };
  /** Polls until something is asked by `method`, and gives its key. */
  const asked = async (method: string): Promise<[key: string, asked: Asked]> => {
    for (;;) {
      const { inputRequests = {} } = await get();
      const found = Object.entries(inputRequests).find(([, request]) => request.method === method);
      if (found) return found;
      await nextTurn(); // the server is in this process
    }
  };
  const update = (inputResponses: object, capabilities: object = LENDING) =>
    rpc("tasks/update", { taskId, inputResponses }, capabilities);
  return { service, noted, taskId, get, asked, update };
}

test.each([
  ["memory", "keeps its place", overMemory, 60_000],
  ["http", "waits", overHttp, 20],
] as const)(
  "over %s a task asks its client's model, and its person, while the run %s",
  async (_name, _how, transport, ms) => {
    const { service, noted, taskId, get, asked, update } = await open(transport, ms);
    const [first, { params }] = await asked("sampling/createMessage");
    expect(params.messages?.map(({ role }) => role)).toEqual(["user"]);
    expect(await get()).toMatchObject({ status: "input_required", pollIntervalMs: 500 });
    // A client that does not lend its model is not asked.
    expect((await get({ ...FORMS, extensions: TASKS })).inputRequests ?? {}).toEqual({});
    await update({ [first]: notes("mine") }, { ...FORMS, extensions: TASKS });
    await update({ [first]: { nonsense: true }, other: says("x") });
    expect((await asked("sampling/createMessage"))[0]).toBe(first);
    await update({ [first]: notes("a") });
    await update({ [first]: notes("late") });
    const [approval] = await asked("elicitation/create");
    await update({ [approval]: { action: "accept", content: { decision: "approve" } } });
    const [second, { params: more }] = await asked("sampling/createMessage");
    expect(second).not.toBe(first);
    expect(more.messages?.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    await update({ [second]: says("noted") });
    expect((await reach(service, taskId, "completed")).run.answer).toBe("noted");
    expect(await get()).toMatchObject({ status: "completed" });
    expect(noted).toEqual(["a"]);
  },
);

test.each([
  ["an elicitation's no", { action: "decline" }, "it was declined"],
  ["an error", { error: { code: -1, message: "User rejected sampling request" } }, "User rejected sampling"],
])("%s in the place of a reply ends the run", async (_form, response, why) => {
  const { service, taskId, asked, update } = await open(overMemory, 60_000);
  const [key] = await asked("sampling/createMessage");
  await update({ [key]: response });
  const { run } = await reach(service, taskId, "failed");
  expect(run.failure).toMatchObject({ reason: "model_unavailable", message: expect.stringContaining(why) });
  expect(run.principal).toBe(ME);
});
