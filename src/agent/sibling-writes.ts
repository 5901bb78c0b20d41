import type { ToolCall } from "@langchain/core/messages/tool";
import { isAtOrBelow } from "../backends/paths.ts";
import type { AgentTool } from "./agent-tool.ts";
import type { FilesState } from "./state.ts";

/** `open`: the task ended without an answer, because a person is asked or the run was stopped. */
type End = "answered" | "open";

/** Ends of the calls of a step, by the state value the step started from, which identifies it; see `StepFiles`. */
const ends = new WeakMap<FilesState, Map<string, Promise<End>>>();

/**
 * Does the work of a call so that other calls of its step can wait for the end of it. `oneByOne`: begins when the
 * calls before it have ended.
 */
export async function asSibling<Result>(
  step: FilesState,
  { callId, oneByOne }: { callId: string; oneByOne: boolean },
  work: () => Promise<Result>,
): Promise<Result> {
  const known = ends.get(step) ?? new Map<string, Promise<End>>();
  ends.set(step, known);
  const before = oneByOne ? [...known.values()].at(-1) : undefined;
  let tell: (end: End) => void = () => undefined;
  known.set(callId, new Promise((resolve) => (tell = resolve)));
  try {
    await before;
    const result = await work();
    tell("answered");
    return result;
  } catch (error) {
    tell("open");
    throw error;
  }
}

/** The calls of a reply, and the tools they are made of. */
export interface Reply {
  readonly calls: readonly ToolCall[];
  readonly tools: ReadonlyMap<string, AgentTool>;
}

/**
 * Waits for the calls that stand before `callId` in its reply and write at, above or below `path`. Calls of a reply
 * run at once, but a read is to show what was written before it.
 *
 * @returns those that have not written yet, because a person is asked about them.
 */
export async function earlierWrites(
  step: FilesState,
  { callId, path }: { callId: string; path: string },
  { calls, tools }: Reply,
): Promise<ToolCall[]> {
  const own = calls.findIndex(({ id }) => id === callId);
  const writes = calls.slice(0, own).filter((call) => touches(tools.get(call.name), call, path));
  const open: ToolCall[] = [];
  for (const call of writes) if ((await ends.get(step)?.get(call.id ?? "")) === "open") open.push(call);
  return open;
}

function touches(tool: AgentTool | undefined, { args }: ToolCall, path: string): boolean {
  if (tool?.kind !== "write") return false;
  const checked = tool.validate(args);
  const written = checked.ok ? tool.pathOf(checked.args) : undefined;
  return written !== undefined && (isAtOrBelow(written, path) || isAtOrBelow(path, written));
}
