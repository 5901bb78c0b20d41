import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, CheckpointTuple } from "@langchain/langgraph";
import { finishedTasks } from "./pending.ts";
import {
  CHECKPOINTER_KEY,
  INTERRUPT,
  NO_TASK,
  RESUME,
  RESUME_MAP_KEY,
  type Scratchpad,
  SCRATCHPAD_KEY,
} from "./langgraph-keys.ts";

/** Takes the place of an answer that was refused, which LangGraph would offer again. */
const REFUSED = { deepagent: "refused answer" };

/**
 * Takes away an answer without an id that may have been given to another question. Where a run begins with a
 * graph of ours, its answers have ids; below someone else's graph LangGraph offers such an answer to every open
 * question, though it has shown one. So it counts only where no other is open; else the questions stay open.
 */
export async function refuseSharedAnswer({ configurable = {} }: RunnableConfig): Promise<void> {
  const scratchpad = configurable[SCRATCHPAD_KEY] as Scratchpad | undefined; // LangGraph's
  if (scratchpad?.nullResume === undefined) return;
  const hasOwn = scratchpad.resume.length > scratchpad.interruptCounter + 1;
  if (hasOwn) return;
  const isStale = Boolean(configurable[RESUME_MAP_KEY]) || isRefused(scratchpad.nullResume);
  if (!isStale && (await isOnlyQuestion(configurable))) return;
  delete scratchpad.nullResume;
}

/**
 * What goes into `configurable` of a graph that a task of another graph runs, as a node or by a call: without the
 * checkpoint of that one, with which LangGraph would run finished calls again at every resume. The key must be
 * absent.
 */
export function belowItsTask(configurable: Record<string, unknown> = {}): Record<string, unknown> {
  if (configurable[CHECKPOINTER_KEY] === undefined) return configurable;
  const { checkpoint_id: _outer, ...own } = configurable;
  return own;
}

const isRefused = (answer: unknown): boolean =>
  typeof answer === "object" &&
  answer !== null &&
  "deepagent" in answer &&
  answer.deepagent === REFUSED.deepagent;

/** Whether the running task alone has asked, in its graph and in those around it; if not, the answer is crossed out. */
async function isOnlyQuestion(configurable: Record<string, unknown>): Promise<boolean> {
  const checkpointer = configurable[CHECKPOINTER_KEY] as BaseCheckpointSaver | undefined; // LangGraph's
  const { thread_id, checkpoint_ns: own } = configurable;
  if (typeof checkpointer !== "object" || typeof own !== "string") return false;
  const parts = own.split("|");
  const around = await Promise.all(
    parts.map((_, depth) =>
      checkpointer.getTuple({
        configurable: { thread_id, checkpoint_ns: parts.slice(0, depth).join("|") },
      }),
    ),
  );
  if (around.every((tuple) => tuple === undefined || askingTasks(tuple).size <= 1)) return true;
  const stored = around.flatMap((tuple) => (tuple && hasAnswer(tuple) ? [tuple] : []));
  await Promise.all(stored.map(({ config }) => checkpointer.putWrites(config, [[RESUME, REFUSED]], NO_TASK)));
  return false;
}

function askingTasks({ pendingWrites = [] }: CheckpointTuple): ReadonlySet<string> {
  const finished = finishedTasks(pendingWrites);
  const asking = pendingWrites.filter(([task, channel]) => channel === INTERRUPT && !finished.has(task));
  return new Set(asking.map(([task]) => task));
}

const hasAnswer = ({ pendingWrites = [] }: CheckpointTuple): boolean =>
  pendingWrites.some(([task, channel]) => task === NO_TASK && channel === RESUME);
