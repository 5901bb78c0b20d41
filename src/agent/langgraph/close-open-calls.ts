/** Adds results for calls that will not be finished, because their thread continues with something new. */
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { FilesUpdate, ThreadFiles } from "../../backends/backend.ts";
import type { AgentState } from "../contracts/state.ts";
import type { EarlierEnd } from "../contracts/agent.ts";
import { callsOf, lastAnswer, replyWith } from "../messages/messages.ts";
import type { AgentGraph } from "./definition.ts";
import { CHECKPOINTER_KEY, INTERRUPT, RESUME, branchTo, interruptsIn } from "./internals.ts";
import { type Reached, describeLimit } from "../budget/limits.ts";
import type { Address, Writes } from "./open-interrupts.ts";
import { below, finishedTasks, isRequest, openInterrupts, sendsIn } from "./open-interrupts.ts";
import { callOf } from "./unfinished-step.ts";
import { TOOLS, filesReducer, mergedUpdate } from "./channels.ts";
import { StepFiles } from "../step/files.ts";
import { contextOf } from "./step-of-task.ts";
import { type MergedFiles, describeConflict, mergeFiles } from "../step/merge-files.ts";
import { FILES_NOT_KNOWN, keptFiles, stateReached, statefulRunnable } from "./nested-children.ts";
import { defined } from "../../core/unknown.ts";

/**
 * Closes the open calls of a step with results that state their progress, and merges the files of subagents. Results
 * are stored like those of the calls, each in one write: after a crash, missing ones are made again.
 */
export async function closeAbandonedCalls(
  graph: AgentGraph,
  configurable: Readonly<Record<string, unknown>>,
  end: EarlierEnd | undefined,
): Promise<void> {
  const { checkpointer } = graph;
  if (typeof checkpointer !== "object") return;
  const address = { thread_id: configurable["thread_id"], checkpoint_ns: "" };
  const ending = { why: WHY[end ?? "replaced"], isFailure: end === "failed" };
  await closeCalls(graph, checkpointer, address, ending);
}

/** Closes calls that wait for a person when a limit stops the agent. Returns false if no call waits. */
export async function closeCallsAtLimit(
  graph: AgentGraph,
  configurable: Readonly<Record<string, unknown>>,
  limit: Reached,
): Promise<boolean> {
  const checkpointer = checkpointerOf(configurable, graph);
  if (checkpointer === undefined) return false;
  if ((await openInterrupts(checkpointer, configurable)).length === 0) return false;
  const { thread_id, checkpoint_ns = "" } = configurable;
  const address = { thread_id, checkpoint_ns: checkpoint_ns as string }; // LangGraph's
  const parent = contextOf({ configurable }).files;
  const ending = { why: `${describeLimit(limit)} was reached`, next: graph.loopStart };
  await closeCalls(graph, checkpointer, address, ending, parent);
  return true;
}

/** The checkpointer of a graph. One inside another keeps its thread with that of the outer graph. */
export function checkpointerOf(
  configurable: Readonly<Record<string, unknown>>,
  graph: Pick<AgentGraph, "checkpointer">,
): BaseCheckpointSaver | undefined {
  const inherited = configurable[CHECKPOINTER_KEY] as BaseCheckpointSaver | undefined; // LangGraph's key
  const checkpointer = inherited ?? graph.checkpointer;
  return typeof checkpointer === "object" ? checkpointer : undefined;
}

interface Ending {
  why: string;
  isFailure?: boolean;
  next?: string;
}

async function closeCalls(
  graph: AgentGraph,
  checkpointer: BaseCheckpointSaver,
  address: Address,
  ending: Ending,
  parent?: ThreadFiles,
): Promise<void> {
  const step = await openStep(graph, checkpointer, address, parent);
  // In a step that was broken off, it is unknown which calls of subagents had been answered and had begun.
  const toolsAskedAbout = async (task: string): Promise<string[]> => {
    const open = ending.next === undefined ? [] : await openInterrupts(checkpointer, below(address, task));
    return open.flatMap(({ value }) =>
      isRequest(value) ? value.actionRequests.map(({ name }) => name) : [],
    );
  };
  for (const { task, call, files, reached } of step?.left ?? []) {
    const tool = graph.facts.tools.get(call.name);
    const subagent =
      tool?.kind === "delegate" ? { files, reached, waiting: await toolsAskedAbout(task) } : undefined;
    const message = resultOf(call, {
      ...ending,
      isWaiting: isWaiting(step?.writes ?? [], task),
      hasEffect: tool?.kind !== "read" && tool?.kind !== "plan",
      subagent,
    });
    const next = ending.next === undefined ? {} : { [branchTo(ending.next)]: null };
    const writes = Object.entries({ messages: [message], ...mergedUpdate(files), ...next });
    await checkpointer.putWrites(step?.config ?? {}, writes, task);
  }
}

interface LeftCall {
  task: string;
  call: ToolCall;
  /** The files that its subagent had changed, merged with those of its siblings. */
  files: MergedFiles;
  reached: Progress;
}

/**
 * The open step of an agent, with everything that it and its subagents `changed`. One of its own (without `parent`)
 * matters in the middle of a step only.
 */
async function openStep(
  graph: AgentGraph,
  checkpointer: BaseCheckpointSaver,
  address: Address,
  parent?: ThreadFiles,
): Promise<(Progress & { config: RunnableConfig; writes: Writes; left: LeftCall[] }) | undefined> {
  const tuple = await checkpointer.getTuple({ configurable: address });
  const sends = sendsIn(tuple);
  if (!tuple || (!parent && sends.length === 0)) return undefined;
  const { pendingWrites: writes = [], config } = tuple;
  const { values, tasks } = await graph.keptBy(checkpointer).getState({
    // With the id, LangGraph leaves out writes of tasks after the checkpoint.
    configurable: {
      ...address,
      checkpoint_id: config.configurable?.["checkpoint_id"],
      [CHECKPOINTER_KEY]: checkpointer,
    },
  });
  const state: Partial<AgentState> = values;
  const base = { ...state.files };
  const finished = finishedTasks(writes);
  const updates: FilesUpdate[] = [];
  for (const [task, channel, value] of writes) {
    if (channel !== "files" || !finished.has(task)) continue;
    const update = value as FilesUpdate; // our channel's own updates
    updates.push(update);
    new StepFiles(base, parent, callOf(writes, task)).restore(update);
  }
  const started = new StepFiles(base, parent).atStart();
  const left: LeftCall[] = [];
  for (const { id: task, name, path } of tasks) {
    const { callId } = (sends[Number(path?.[1])]?.args ?? {}) as { callId?: string }; // what our model node sends
    const call = replyWith(state.messages ?? [], callId)?.call;
    if (name !== TOOLS || finished.has(task) || !call) continue;
    const own = new StepFiles(base, parent, call.id);
    const inner = await subagentStep(graph, checkpointer, below(address, task), { call, started });
    const files = mergeFiles(inner?.changed ?? {}, started, own, call.id ?? "");
    own.apply(files.update);
    updates.push(files.update);
    left.push({ task, call, files, reached: inner ?? { state: {}, changed: {} } });
  }
  return { config, writes, state, left, changed: filesReducer(true)(base, updates) };
}

interface Progress {
  state: Partial<AgentState>;
  changed: FilesUpdate;
  /** It reports nothing before its end. */
  isUnknown?: true;
}

/** Progress of a call's subagent, if checkpoints have it. */
async function subagentStep(
  { facts }: AgentGraph,
  checkpointer: BaseCheckpointSaver,
  address: Address,
  { call, started }: { call: ToolCall; started: ThreadFiles },
): Promise<Progress | undefined> {
  if (facts.tools.get(call.name)?.kind !== "delegate") return undefined;
  const { graph, runnable } = facts.subagents?.find(String(call.args["subagent_type"])) ?? {};
  if (graph) return openStep(graph, checkpointer, address, started);
  if (!runnable) return undefined;
  if (!statefulRunnable(runnable)) return { state: {}, changed: {}, isUnknown: true };
  const state = await stateReached(runnable, checkpointer, address);
  return state && { state, changed: { ...state.files } };
}

/** True if a call was waiting for approval, so it had not begun. */
function isWaiting(writes: Writes, task: string): boolean {
  const written = (wanted: string): unknown[] =>
    writes.flatMap(([writer, channel, value]) => (writer === task && channel === wanted ? [value] : []));
  const asked = written(INTERRUPT).flatMap(interruptsIn);
  return asked.some(({ value }) => isRequest(value)) && written(RESUME).length === 0;
}

const WHY = {
  cancelled: "the run was cancelled",
  failed: "the run failed",
  replaced: "the conversation continued with a new message",
} as const;

function resultOf(
  { id = "", name, args }: ToolCall,
  fate: Ending & {
    isWaiting: boolean;
    hasEffect: boolean;
    subagent?: { files: MergedFiles; reached: Progress; waiting: string[] } | undefined;
  },
): ToolMessage {
  const { why, isFailure = false, isWaiting, hasEffect, subagent } = fate;
  const began = `${isFailure ? "Tool call did not complete" : "Tool call was cancelled"}: ${why}`;
  const doubt = " Whether, or how far, it took effect is unknown; check what it would have left behind.";
  let content = `${began} before ${name} had finished.${hasEffect ? doubt : ""}`;
  if (subagent) {
    const { files, reached, waiting } = subagent;
    const said = lastAnswer(reached.state.messages ?? []);
    content = [
      `${began} before the subagent '${String(args["subagent_type"])}' had finished.`,
      ...(reached.isUnknown && !isWaiting ? [FILES_NOT_KNOWN] : keptFiles(files.update)),
      ...files.conflicts.map(describeConflict),
      ...(waiting.length > 0
        ? [`Calls that waited there for a person's approval were not run: ${waiting.join(", ")}.`]
        : []),
      ...(said === "" ? [] : [`What it said before:\n${said}`]),
    ].join("\n\n");
  } else if (isWaiting) content = `${began} while ${name} waited for a person's approval. It was not run.`;
  return new ToolMessage({ content, name, tool_call_id: id, status: "error" });
}

type ThreadPlace = Partial<Record<"thread_id" | "checkpoint_id", unknown>>;

const tupleAt = (checkpointer: BaseCheckpointSaver, { thread_id, checkpoint_id }: ThreadPlace) =>
  checkpointer.getTuple({ configurable: { thread_id, checkpoint_ns: "", ...defined({ checkpoint_id }) } });

export async function isInStep(checkpointer: BaseCheckpointSaver, place: ThreadPlace): Promise<boolean> {
  const tuple = await tupleAt(checkpointer, place);
  return sendsIn(tuple).length > 0 || (tuple?.pendingWrites ?? []).length > 0;
}

/** Results of finished calls of an unfinished step, which LangGraph drops when a thread gets a new message. */
export async function finishedCalls(
  checkpointer: BaseCheckpointSaver,
  place: ThreadPlace,
): Promise<Pick<AgentState, "messages"> & Partial<AgentState>> {
  const writes = (await tupleAt(checkpointer, place))?.pendingWrites ?? [];
  const of = (name: string): unknown[] =>
    writes.flatMap(([, channel, value]) => (channel === name && value !== undefined ? [value] : []));
  const messages = of("messages").flat() as BaseMessage[]; // our channels, and so are the next two
  const files = filesReducer(true)({}, of("files") as FilesUpdate[]);
  const todos = of("todos").at(-1) as AgentState["todos"] | undefined;
  // Nothing followed the calls of the last reply, because the run stopped when it came.
  const fate = { why: WHY.replaced, isWaiting: false, hasEffect: false };
  const unbegun = callsOf(messages.at(-1)).map((call) => resultOf(call, fate));
  const changed = Object.keys(files).length > 0 && { files };
  return { messages: [...messages, ...unbegun], ...changed, ...defined({ todos }) };
}
