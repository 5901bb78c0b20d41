/** Reads the whole arguments and result of a call, of which the journal has the beginning. */
import type { Backend } from "../backends/backend.ts";
import { parseContent } from "../backends/file-data.ts";
import type { RunEvent } from "./events.ts";
import type { RunRepository } from "./ports.ts";
import type { Checkpoints } from "./thread-ports.ts";
import { type AgentPath, type Principal, type Run, isFinal } from "./run.ts";
import type { CallTexts } from "./service.ts";

interface CallContext {
  runs: RunRepository;
  checkpoints: Checkpoints | undefined;
  /** The file tree of a run, where long results are kept. */
  files: (runId: string) => Promise<Backend | undefined>;
}

/** The call that began with event `seq`; `undefined`: no such run, or no call began there. */
export async function callTexts(
  principal: Principal,
  runId: string,
  seq: number,
  { runs, checkpoints, files }: CallContext,
): Promise<CallTexts | undefined> {
  const run = await runs.read.run(principal, runId);
  const page = run && (await runs.read.journal(principal, runId, seq - 1, 1));
  const event = page?.events.find((one) => one.seq === seq);
  if (run === undefined || event?.kind !== "tool_started") return undefined;
  const { agent, time, data } = event;
  const call = { agent, time, tool: data.tool, summary: data.summary };
  if (data.within !== undefined) return { ...call, missing: OF_PROGRAM };
  const maker = await madeBy(run, agent, runs);
  const found = checkpoints && (await findTexts(checkpoints, maker, event));
  if (found === undefined) return { ...call, missing: agent.length === 0 ? LOST : LOST_BELOW };
  if (found === "ambiguous") return { ...call, missing: AMBIGUOUS };
  const { args, result } = found;
  if (result === undefined)
    return { ...call, args, missing: isFinal(run.status) ? NO_RESULT : NO_RESULT_YET };
  if (result.keptIn === undefined) return { ...call, args, result };
  const whole = await textAt(result.keptIn, await files(maker.id));
  const { text, isError } = result;
  if (whole !== undefined) return { ...call, args, result: { text: whole, isError } };
  const missing = `This is the beginning: the whole result was kept in ${result.keptIn}, which no longer exists.`;
  return { ...call, args, result: { text, isError }, missing };
}

/** The run that an agent works for: a subagent in the background has its own. */
async function madeBy(run: Run, [first]: AgentPath, { read }: RunRepository): Promise<Run> {
  const child = first && (await read.run(run.principal, first.callId));
  return child?.parent?.runId === run.id ? child : run;
}

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

async function textAt(path: string, files: Backend | undefined): Promise<string | undefined> {
  const { data } = (await files?.readRaw(path)) ?? {};
  const known = data && parseContent(path, data);
  return known?.ok && known.content.kind === "text" ? known.content.text : undefined;
}

const LOST = "The messages of this step are no longer stored. Only the run's journal still describes it.";
const AMBIGUOUS =
  "Several subagents have a step with this id, so it cannot be told which texts are its own. The journal has its beginning.";
const OF_PROGRAM =
  "A program made this call and got its result. The messages have the program alone; the journal has the beginning of the call.";
const NO_RESULT = "The run ended before there was a result.";
const NO_RESULT_YET = "There is no result so far.";
const LOST_BELOW =
  "This subagent does not keep its messages here, or they are not stored any more. The journal of the run has the beginning of the step.";
