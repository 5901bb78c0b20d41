/** Calls of the agent's tools by middleware and tools of LangChain, which find them in the list for the model. */
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { textMemberOf, defined } from "../../core/unknown.ts";
import type { SpawnSubagent } from "../../tools/tool.ts";
import { mergeUpdates } from "../budget/meter.ts";
import type { CallResult } from "../contracts/middleware.ts";
import type { ProgramQuestions } from "../contracts/program.ts";
import type { StateUpdate } from "../contracts/state.ts";
import type { CallStep } from "./call-step.ts";
import { type Governed, govern } from "./govern.ts";
import { Suspended, innerStep } from "./inner-step.ts";

type MakeCall = (name: string, args: ToolCall["args"]) => Promise<CallResult["content"]>;

/** By the graph task of the call during which they are made. */
const callsAtWork = new Map<string, MakeCall>();

/** Undefined outside of LangGraph: calls without a task must not find each other. */
const taskId = (config: RunnableConfig | undefined): string | undefined =>
  textMemberOf(config?.configurable, "__pregel_task_id");

/** The function of a tool as LangChain sees it. Outside of a call, nobody could be asked or would know of the call. */
export const offeredFunction =
  (name: string) =>
  async (
    args: ToolCall["args"],
    _manager?: unknown,
    config?: RunnableConfig,
  ): Promise<CallResult["content"]> => {
    const make = callsAtWork.get(taskId(config) ?? "");
    if (make === undefined) throw new Error(`${name} runs inside a call of a deep agent only`);
    return make(name, args);
  };

/**
 * Carries out a call like `govern`, and those that middleware and tools make during it: each is checked, asked about,
 * recorded and reported like a call of a program. When a person is asked, the call begins again with the answer.
 */
export async function governWithOffered(
  made: ToolCall,
  step: CallStep,
  config: RunnableConfig,
): Promise<Governed> {
  const task = taskId(config);
  if (task === undefined) return govern(made, step);
  const outer = step.scope.context.callId;
  const updates: StateUpdate[] = [];
  let number = 0;
  // Read once: each reading takes the answers in their order.
  let questions: Promise<ProgramQuestions> | undefined;
  let stop = (_pause: unknown): void => {};
  const stopped = new Promise<unknown>((resolve) => (stop = resolve));
  const makeCall: MakeCall = async (name, args) => {
    // Both would count their calls from 1.
    if (made.name === "run_program") throw new Error(`${name} cannot be called around a program`);
    const inner = { outer, number: (number += 1) };
    const call: ToolCall = { type: "tool_call", id: `${outer}:${inner.number}`, name, args };
    for (;;) {
      const asked = await (questions ??= step.program.questions());
      const { scope, ...rest } = innerStep(step, call, { inner, asked, begun: async () => {} });
      const { spawn } = step.scope.context;
      // Unlike a program, this call is not replayed from records: a subagent continues from its checkpoints.
      const own: SpawnSubagent | undefined = spawn && ((task) => spawn(task, call.id));
      const context = { ...scope.context, ...defined({ spawn: own }) };
      const governed = await govern(call, { ...rest, scope: { ...scope, context } });
      if (governed.kind !== "waits") {
        if (governed.result.update) updates.push(governed.result.update);
        return governed.result.content;
      }
      const { pause } = governed;
      try {
        if (!(pause instanceof Suspended)) throw pause;
        await asked.ask([pause.waiting]);
        questions = undefined;
      } catch (error) {
        if (!step.scope.isPause(error)) throw error;
        stop(error);
        // Whoever made the call may catch errors, and has to begin again.
        return new Promise(() => {});
      }
    }
  };
  callsAtWork.set(task, makeCall);
  try {
    const paused = stopped.then(async (pause) => {
      await step.effects.withdraw();
      return { kind: "waits", pause } as const;
    });
    const governed = await Promise.race([govern(made, step), paused]);
    if (governed.kind === "waits" || updates.length === 0) return governed;
    const update = mergeUpdates([...updates, governed.result.update ?? {}]);
    return { ...governed, result: { ...governed.result, update } };
  } finally {
    callsAtWork.delete(task);
  }
}
