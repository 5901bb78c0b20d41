import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, CheckpointTuple, Send } from "@langchain/langgraph";
import type { FilesUpdate, ThreadFiles } from "../../backends/backend.ts";
import type { AgentState } from "../contracts/state.ts";
import type { EarlierEnd } from "../contracts/agent.ts";
import { isReply, lastAnswer } from "../messages/messages.ts";
import type { AgentGraph } from "./definition.ts";
import { CHECKPOINTER_KEY, INTERRUPT, RESUME, TASKS_CHANNEL, branchTo, interruptsIn } from "./internals.ts";
import { type Reached, describeLimit } from "../budget/limits.ts";
import { finishedTasks, isRequest, openInterrupts } from "./open-interrupts.ts";
import { callOf } from "./resume.ts";
import { FILE_NOTES, TOOLS, filesReducer } from "./channels.ts";
import { StepFiles } from "../step/files.ts";
import { contextOf } from "./step-of-task.ts";
import { type MergedFiles, describeConflict, fileNotesOf, mergeFiles } from "../step/merge-files.ts";
import { FILES_NOT_KNOWN, keptFiles, stateReached, statefulRunnable } from "./nested-children.ts";
import { defined } from "../../core/defined.ts";

/** Gives results to calls that will not be finished, because their thread continues with something new. */

type Writes = NonNullable<CheckpointTuple["pendingWrites"]>;

/**
 * Closes the calls of a step that will not be finished, because the thread continues with something new. Each gets a
 * result that states its progress. Files that a subagent had changed by then are merged and named.
 *
 * The results are stored like those of the calls, each in one write: after a crash, missing ones are made again.
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
  await closeCalls(graph, { checkpointer, address }, ending);
}

/**
 * The same for calls that wait for a person when a limit stops the agent. The graph may then run to its end. False if
 * no call waits.
 */
export async function closeCallsAtLimit(
  graph: AgentGraph,
  configurable: Readonly<Record<string, unknown>>,
  limit: Reached,
): Promise<boolean> {
  // A graph inside another one keeps its thread with the outer graph's checkpointer.
  const checkpointer =
    (configurable[CHECKPOINTER_KEY] as BaseCheckpointSaver | undefined) ?? graph.checkpointer;
  if (typeof checkpointer !== "object") return false;
  if ((await openInterrupts(checkpointer, configurable)).length === 0) return false;
  const { thread_id, checkpoint_ns = "" } = configurable;
  const address = { thread_id, checkpoint_ns: checkpoint_ns as string }; // LangGraph's
  const parent = contextOf({ configurable }).files;
  const ending = { why: `${describeLimit(limit)} was reached`, next: graph.loopStart };
  await closeCalls(graph, { checkpointer, address, ...(parent ? { parent } : {}) }, ending);
  return true;
}

/** Results for the calls of a reply that nothing followed, because the run stopped when it was given. */
export function resultsOfUnbegun(
  messages: readonly BaseMessage[],
  end: EarlierEnd | undefined,
): ToolMessage[] {
  const fate = {
    why: WHY[end ?? "replaced"],
    isFailure: end === "failed",
    isWaiting: false,
    hasEffect: false,
  };
  const reply = messages.at(-1);
  const calls = reply !== undefined && isReply(reply) ? (reply.tool_calls ?? []) : [];
  return calls.map((call) => {
    const { id = "", name } = call;
    return new ToolMessage({ content: resultOf(call, fate), name, tool_call_id: id, status: "error" });
  });
}

interface Thread {
  checkpointer: BaseCheckpointSaver;
  address: Address;
  /** Files of the agent that delegated. */
  parent?: ThreadFiles;
}

/** Why calls are given up. */
interface Ending {
  why: string;
  isFailure?: boolean;
  /** The node that follows. */
  next?: string;
}

async function closeCalls(graph: AgentGraph, thread: Thread, ending: Ending): Promise<void> {
  const { checkpointer, address, parent } = thread;
  const step = await openStep(graph, checkpointer, address, parent);
  // In a step that was broken off, it is unknown which calls of subagents had been answered and had begun.
  const waitingIn = async (at: Address) =>
    ending.next === undefined ? [] : toolsAskedAbout(checkpointer, at);
  for (const { task, call, files, reached } of step?.left ?? []) {
    const tool = graph.facts.tools.get(call.name);
    const text = resultOf(call, {
      ...ending,
      isWaiting: isWaiting(step?.writes ?? [], task),
      hasEffect: tool?.kind !== "read" && tool?.kind !== "plan",
      ...(tool?.kind === "delegate"
        ? { subagent: { files, reached, waiting: await waitingIn(below(address, task)) } }
        : {}),
    });
    const { id = "", name } = call;
    const message = new ToolMessage({ content: text, name, tool_call_id: id, status: "error" });
    const notes = fileNotesOf(files.conflicts);
    const writes: Array<[string, unknown]> = [
      ["messages", [message]],
      ...(Object.keys(files.update).length > 0 ? [["files", files.update] satisfies [string, unknown]] : []),
      ...(Object.keys(notes).length > 0 ? [[FILE_NOTES, notes] satisfies [string, unknown]] : []),
      ...(ending.next === undefined ? [] : [[branchTo(ending.next), null] satisfies [string, unknown]]),
    ];
    await checkpointer.putWrites(step?.config ?? {}, writes, task);
  }
}

interface LeftCall {
  task: string;
  call: ToolCall;
  /** The files that its subagent had changed, merged with those of its siblings. */
  files: MergedFiles;
  /** Progress of that agent. */
  reached: Progress;
}

interface OpenStep {
  config: RunnableConfig;
  writes: Writes;
  state: Partial<AgentState>;
  left: LeftCall[];
  /** Everything this agent changed so far, its subagents included. */
  changed: FilesUpdate;
}

type Address = Readonly<{ thread_id: unknown; checkpoint_ns: string }>;

/**
 * An agent's last checkpoint, what its finished calls brought since, and the calls that are left. An agent
 * of its own (without `parent`) matters in the middle of a step only.
 */
async function openStep(
  graph: AgentGraph,
  checkpointer: BaseCheckpointSaver,
  address: Address,
  parent?: ThreadFiles,
): Promise<OpenStep | undefined> {
  const tuple = await checkpointer.getTuple({ configurable: address });
  const sent: unknown = tuple?.checkpoint.channel_values[TASKS_CHANNEL];
  const sends = Array.isArray(sent) ? (sent as Send[]) : [];
  if (!tuple || (!parent && sends.length === 0)) return undefined;
  const { pendingWrites: writes = [], config } = tuple;
  const { values, tasks } = await graph.keptBy(checkpointer).getState({
    // With the id, LangGraph leaves out what tasks wrote after the checkpoint.
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
    StepFiles.of(base, parent, callOf(writes, task)).restore(update);
  }
  const started = StepFiles.of(base, parent).atStart();
  const left: LeftCall[] = [];
  for (const { id: task, name, path } of tasks) {
    const call = callSent(sends[Number(path?.[1])], state.messages ?? []);
    if (name !== TOOLS || finished.has(task) || !call) continue;
    const own = StepFiles.of(base, parent, call.id);
    const inner = await subagentStep(graph, checkpointer, below(address, task), { call, started });
    const files = mergeFiles(inner?.changed ?? {}, started, own, call.id ?? "");
    own.apply(files.update);
    updates.push(files.update);
    left.push({ task, call, files, reached: inner ?? { state: {}, changed: {} } });
  }
  return { config, writes, state, left, changed: filesReducer(true)(base, updates) };
}

/** Progress of a call's subagent. */
interface Progress {
  state: Partial<AgentState>;
  changed: FilesUpdate;
  /** It tells nothing before its end. */
  isUnknown?: true;
}

/** Progress of a call's subagent, if checkpoints tell it. */
async function subagentStep(
  { facts }: AgentGraph,
  checkpointer: BaseCheckpointSaver,
  address: Address,
  { call, started }: { call: ToolCall; started: ThreadFiles },
): Promise<Progress | undefined> {
  if (facts.tools.get(call.name)?.kind !== "delegate") return undefined;
  const name = String(call.args["subagent_type"]);
  const graph = facts.subagents?.graphOf(name);
  if (graph) return openStep(graph, checkpointer, address, started);
  const runnable = facts.subagents?.runnableOf(name);
  if (!runnable) return undefined;
  if (!statefulRunnable(runnable)) return { state: {}, changed: {}, isUnknown: true };
  const state = await stateReached(runnable, checkpointer, address);
  return state && { state, changed: { ...state.files } };
}

const below = ({ thread_id, checkpoint_ns }: Address, task: string): Address => ({
  thread_id,
  checkpoint_ns: [checkpoint_ns, `${TOOLS}:${task}`].filter((part) => part !== "").join("|"),
});

function callSent(send: Send | undefined, messages: readonly BaseMessage[]): ToolCall | undefined {
  const { callId } = (send?.args ?? {}) as { callId?: string }; // what our model node sends
  const reply = messages.findLast(
    (message) => AIMessage.isInstance(message) && message.tool_calls?.some(({ id }) => id === callId),
  );
  return AIMessage.isInstance(reply) ? reply.tool_calls?.find(({ id }) => id === callId) : undefined;
}

/** True if a call was waiting for approval, so it had not begun. */
function isWaiting(writes: Writes, task: string): boolean {
  const own = writes.filter(([writer]) => writer === task);
  const isAsked = own.some(
    ([, channel, written]) =>
      channel === INTERRUPT && interruptsIn(written).some(({ value }) => isRequest(value)),
  );
  return isAsked && !own.some(([, channel]) => channel === RESUME);
}

interface Fate extends Ending {
  isWaiting: boolean;
  hasEffect: boolean;
  subagent?: { files: MergedFiles; reached: Progress; waiting: string[] };
}

const WHY = {
  cancelled: "the run was cancelled",
  failed: "the run failed",
  replaced: "the conversation continued with a new message",
} as const;

function resultOf({ name, args }: ToolCall, fate: Fate): string {
  const { why, isFailure = false, isWaiting, hasEffect, subagent } = fate;
  const began = isFailure ? "Tool call did not complete" : "Tool call was cancelled";
  if (subagent) {
    const { files, reached, waiting } = subagent;
    const said = lastAnswer(reached.state.messages ?? []);
    return [
      `${began}: ${why} before the subagent '${String(args["subagent_type"])}' had finished.`,
      ...(reached.isUnknown && !isWaiting ? [FILES_NOT_KNOWN] : keptFiles(files.update)),
      ...files.conflicts.map(describeConflict),
      ...notRun(waiting),
      ...(said === "" ? [] : [`What it said before:\n${said}`]),
    ].join("\n\n");
  }
  if (isWaiting) return `${began}: ${why} while ${name} waited for a person's approval. It was not run.`;
  const doubt = hasEffect
    ? " Whether, or how far, it took effect is unknown; check what it would have left behind."
    : "";
  return `${began}: ${why} before ${name} had finished.${doubt}`;
}

/** The tools that a subagent, or one below it, asks a person about. */
async function toolsAskedAbout(checkpointer: BaseCheckpointSaver, address: Address): Promise<string[]> {
  const open = await openInterrupts(checkpointer, address);
  return open.flatMap(({ value }) => (isRequest(value) ? value.actionRequests.map(({ name }) => name) : []));
}

const notRun = (tools: readonly string[]): string[] =>
  tools.length > 0
    ? [`Calls that waited there for a person's approval were not run: ${tools.join(", ")}.`]
    : [];

/**
 * The results of the finished calls of an unfinished step. LangGraph drops them when a thread continues with a new
 * message, and calls that took effect would be reported as cancelled.
 */
export async function finishedCalls(
  checkpointer: BaseCheckpointSaver,
  { thread_id, checkpoint_id }: NonNullable<RunnableConfig["configurable"]>,
): Promise<Partial<AgentState>> {
  const at = { thread_id, checkpoint_ns: "", ...defined({ checkpoint_id }) };
  const writes = (await checkpointer.getTuple({ configurable: at }))?.pendingWrites ?? [];
  const of = (name: string): unknown[] =>
    writes.flatMap(([, channel, value]) => (channel === name && value !== undefined ? [value] : []));
  const messages = of("messages").flat() as BaseMessage[]; // our channels, and so are the next two
  const files = filesReducer(true)({}, of("files") as FilesUpdate[]);
  const todos = of("todos").at(-1) as AgentState["todos"] | undefined;
  return {
    ...(messages.length > 0 ? { messages } : {}),
    ...(Object.keys(files).length > 0 ? { files } : {}),
    ...defined({ todos }),
  };
}
