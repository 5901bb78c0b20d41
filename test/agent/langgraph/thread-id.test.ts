import { MemorySaver } from "@langchain/langgraph";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { callingOnce, scriptedModel } from "../../support/scripted-model.ts";

const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);
beforeEach(() => void process.on("unhandledRejection", note));
afterEach(() => void process.off("unhandledRejection", note));

const task = { messages: [{ role: "user", content: "go" }] };
const log = createLogger("silent");

/** Lists files and writes one: a step of two calls, each of which has something to be kept. */
const working = () =>
  scriptedModel(({ call }) =>
    call > 0
      ? { text: "end" }
      : {
          toolCalls: [
            { id: "a", name: "ls", args: { path: "/" } },
            { id: "b", name: "write_file", args: { file_path: "/a.md", content: "x" } },
          ],
        },
  );

const KEEPING: Array<[string, Partial<DeepAgentParams>]> = [
  ["a checkpointer", { checkpointer: new MemorySaver() }],
  ["gates", { interruptOn: { write_file: true } }],
];

describe.each(KEEPING)("an agent with %s and no thread id", (_what, params) => {
  const agent = () => createDeepAgent({ model: working(), log, ...params });
  type Agent = ReturnType<typeof agent>;
  const streamed = async (chunks: AsyncIterable<unknown>): Promise<void> => {
    for await (const _chunk of chunks);
  };
  it.each<[string, (agent: Agent) => Promise<unknown>]>([
    ["invoke", (made) => made.invoke(task)],
    ["invoke with an id that is null", (made) => made.invoke(task, { configurable: { thread_id: null } })],
    ["invoke with an empty id", (made) => made.invoke(task, { configurable: { thread_id: "" } })],
    ["stream", async (made) => streamed(await made.stream(task))],
    ["streamEvents", (made) => streamed(made.streamEvents(task, { version: "v2" }))],
  ])("is refused once, before anything ran, by %s", async (_how, work) => {
    const made = agent();
    await expect(work(made)).rejects.toMatchObject({
      name: "ConfigurationError",
      code: "THREAD_ID_REQUIRED",
      message: expect.stringContaining('{ configurable: { thread_id: "1" } }') as string,
    });
    await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
    expect(await made.invoke(task, { configurable: { thread_id: "1" } })).toHaveProperty("messages");
  });

  it("answers as a subagent with the same error, which its caller can act on", async () => {
    const toolCalls = [{ id: "t", name: "task", args: { description: "work", subagent_type: "keeper" } }];
    const model = callingOnce(...toolCalls);
    const subagents = [{ name: "keeper", description: "keeps", runnable: agent() }];
    const { messages } = await createDeepAgent({ model, subagents, log }).invoke(task);
    expect(messages.at(-2)?.text).toContain("keeps its threads");
    expect(unhandled).toEqual([]);
  });
});
