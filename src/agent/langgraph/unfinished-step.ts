/** Restores the last process's knowledge of an unfinished step, when a graph continues from its checkpoint. */
import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { FilesUpdate } from "../../backends/backend.ts";
import type { AgentState } from "../contracts/state.ts";
import { isReply } from "../messages/messages.ts";
import { CHECKPOINTER_KEY, INTERRUPT, NO_TASK, interruptsIn } from "./internals.ts";
import { currentRun } from "../budget/limits.ts";
import type { AgentLimits } from "../contracts/limits.ts";
import { type Carried, type Meter, SPENT } from "../budget/meter.ts";
import { StepFiles } from "../step/files.ts";
import type { Writes } from "./open-interrupts.ts";
import { isResuming, meterOf, readState, stepOf, threadFiles } from "./step-of-task.ts";

/** Restores files that finished calls of this step changed before a pause or crash: the state has them only later. */
export async function restoreStepFiles(config: RunnableConfig): Promise<void> {
  const { files: base } = readState(config, ["files"]);
  if (!isResuming(config) || StepFiles.knows(base)) return;
  const writes = await stepWrites(config);
  if (StepFiles.knows(base)) return; // another call of the step was faster
  for (const [task, channel, update] of writes) {
    if (channel !== "files" || task === NO_TASK) continue;
    threadFiles(config, callOf(writes, task)).restore(update as FilesUpdate); // our channel's own updates
  }
}

/** The meter with all that the run used before. After a pause, writes of finished calls complete the state. */
export async function loadedMeter(
  config: RunnableConfig,
  state: AgentState,
  limits: AgentLimits,
): Promise<Meter> {
  const meter = meterOf(config, limits);
  if (meter.isLoaded) return meter;
  const writes = isResuming(config) ? await stepWrites(config) : [];
  const unsaved = writes.flatMap(([, channel, value]) => (channel === SPENT ? [value] : []));
  meter.load(state, unsaved as ReadonlyArray<Partial<Carried>>); // our channel's own updates
  return meter;
}

const stepWrites = async (config: RunnableConfig): Promise<Writes> => (await stepOfTask(config)).writes;

/** The running step as it is kept, and the id of the running task. */
export async function stepOfTask({ configurable = {} }: RunnableConfig): Promise<{
  checkpointer: BaseCheckpointSaver | undefined;
  place: RunnableConfig;
  writes: Writes;
  task: string;
}> {
  const checkpointer = configurable[CHECKPOINTER_KEY] as BaseCheckpointSaver | undefined; // LangGraph's key
  const namespace: unknown = configurable["checkpoint_ns"];
  const graphs = typeof namespace === "string" ? namespace.split("|") : [];
  const task = graphs.pop() ?? "";
  const at = { thread_id: configurable["thread_id"], checkpoint_ns: graphs.join("|") };
  const isKept = typeof checkpointer === "object";
  const tuple = isKept ? await checkpointer.getTuple({ configurable: at }) : undefined;
  return {
    checkpointer: isKept ? checkpointer : undefined,
    place: tuple?.config ?? { configurable: at },
    writes: tuple?.pendingWrites ?? [],
    task: task.slice(task.lastIndexOf(":") + 1),
  };
}

/** The last question of the running task before the process ended or the run paused. */
export async function lastQuestion(config: RunnableConfig): Promise<unknown> {
  if (!isResuming(config)) return undefined;
  const { writes, task } = await stepOfTask(config);
  const asked = writes.findLast(([writer, channel]) => writer === task && channel === INTERRUPT);
  return asked && interruptsIn(asked[2]).at(-1)?.value;
}

export function callOf(writes: Writes, task: string): string | undefined {
  for (const [writer, channel, value] of writes) {
    if (writer !== task || channel !== "messages") continue;
    const message: unknown = [value].flat().find((candidate) => ToolMessage.isInstance(candidate));
    if (ToolMessage.isInstance(message)) return message.tool_call_id;
  }
  return undefined;
}

/** Records the first step of the run, once: LangGraph counts from zero when it continues. `turn`: steps of a turn. */
export function noteFirstStep(config: RunnableConfig, turn: number): void {
  meterOf(config, {}).begin(() => {
    const { messages } = currentRun(isResuming(config) ? readState(config, ["messages"]).messages : []);
    // Each reply took one turn. The step of its calls is left out if it made none, or none has finished.
    return messages.reduce((step, message, index) => {
      if (isReply(message)) return step - turn + 1;
      const isFirstResult = ToolMessage.isInstance(message) && !ToolMessage.isInstance(messages[index - 1]);
      return isFirstResult ? step - 1 : step;
    }, stepOf(config));
  });
}
