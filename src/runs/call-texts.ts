/** Reads the whole arguments and result of a call, of which the journal has the beginning. */
import type { Backend } from "../backends/backend.ts";
import { parseContent } from "../backends/file-data.ts";
import type { RunEvent } from "./events.ts";
import type { RunContext } from "./context.ts";
import type { Checkpoints } from "./thread-ports.ts";
import { type Run, isFinal } from "./run.ts";
import type { Implements } from "./scopes.ts";

/**
 * Returns the call that began with event `seq`; undefined if there is no such run, or no call began there. `files`:
 * reads the file tree of a run, where long results are kept.
 */
export const callTexts: Implements<
  "read",
  "callTexts",
  RunContext & { files: (runId: string) => Promise<Backend | undefined> }
> = async ({ runs, files, ...context }, principal, runId, seq) => {
  const checkpoints = await context.checkpoints?.(principal);
  const run = await runs.read.run(principal, runId);
  const page = run && (await runs.read.journal(principal, runId, seq - 1, 1));
  const event = page?.events.find((one) => one.seq === seq);
  if (run === undefined || event?.kind !== "tool_started") return undefined;
  const { agent, time, data } = event;
  const call = { agent, time, tool: data.tool, summary: data.summary };
  if (data.within !== undefined) return { ...call, missing: OF_PROGRAM };
  // A subagent in the background has a run of its own.
  const child = agent[0] && (await runs.read.run(principal, agent[0].callId));
  const maker = child?.parent?.runId === run.id ? child : run;
  const found = checkpoints && (await findTexts(checkpoints, maker, event));
  if (found === undefined) return { ...call, missing: agent.length === 0 ? LOST : LOST_BELOW };
  if (found === "ambiguous") return { ...call, missing: AMBIGUOUS };
  const { args, result } = found;
  if (result === undefined) {
    const missing = isFinal(run.status)
      ? "The run ended before there was a result."
      : "There is no result so far.";
    return { ...call, args, missing };
  }
  if (result.keptIn === undefined) return { ...call, args, result };
  const { data: kept } = (await (await files(maker.id))?.readRaw(result.keptIn)) ?? {};
  const whole = kept && parseContent(result.keptIn, kept);
  const { text, isError } = result;
  if (whole?.ok && whole.content.kind === "text")
    return { ...call, args, result: { text: whole.content.text, isError } };
  const missing = `This is the beginning: the whole result was kept in ${result.keptIn}, which no longer exists.`;
  return { ...call, args, result: { text, isError }, missing };
};

async function findTexts(
  checkpoints: Checkpoints,
  { threadId, createdAt: since, parent }: Run,
  { agent, time, data }: Extract<RunEvent, { kind: "tool_started" }>,
) {
  const { findCall } = await import("../agent/agent.ts");
  const depth = agent.length - (parent?.agent.length ?? 0);
  // The call id in the form that serialised messages use.
  const text = JSON.stringify(data.callId).slice(1, -1);
  const written = await checkpoints.writtenWith(threadId, text);
  return findCall(written, { callId: data.callId, tool: data.tool, time, since, depth });
}

const LOST = "The messages of this step are no longer stored. Only the run's journal still describes it.";
const AMBIGUOUS =
  "Several subagents have a step with this id, so it cannot be told which texts are its own. The journal has its beginning.";
const OF_PROGRAM =
  "A program made this call and got its result. The messages have the program alone; the journal has the beginning of the call.";

const LOST_BELOW =
  "This subagent does not keep its messages here, or they are not stored any more. The journal of the run has the beginning of the step.";
