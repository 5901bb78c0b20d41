/** Questions of other MCP servers in a run: counts them, and keeps those that are asked while a call is at work. */
import type { WorkOptions } from "../agent/agent.ts";
import { MOST_QUESTIONS, TooManyQuestions } from "../tools/question-quota.ts";
import { questionRequest } from "./asked-events.ts";
import type { RunContext } from "./context.ts";
import type { Lease } from "./ports.ts";

export type ForeignQuestions = Required<Pick<WorkOptions, "hold" | "countQuestion">>;

/** `patienceMs`: time that a call waits for an answer. */
export function foreignQuestions(
  lease: Lease,
  { work, runs, feed, clock, newId, patienceMs }: RunContext & { patienceMs: number },
): ForeignQuestions {
  const { principal, rootId } = lease;
  /** Those that this process has let through, and may not have stored yet. */
  const known = new Set<string>();
  const countQuestion = async (id: string): Promise<void> => {
    const stored = (await runs.read.picture(principal, rootId, 0, 1))?.requests ?? [];
    for (const one of stored) if (one.kind === "elicitation") known.add(one.id);
    if (!known.has(id) && known.size >= MOST_QUESTIONS.run) throw new TooManyQuestions("run");
    known.add(id);
  };
  const hold: ForeignQuestions["hold"] = async (asked, signal, ended = signal) => {
    const id = newId("held");
    await countQuestion(id);
    await work.ask(lease, asked.agent, id, [questionRequest(asked)], clock());
    const stop = AbortSignal.any([signal, ended, AbortSignal.timeout(patienceMs)]);
    await feed.wait(rootId, stop, async () => {
      const stored = await runs.read.request(principal, rootId, id);
      return stored?.status === "pending" ? undefined : true;
    });
    signal.throwIfAborted();
    return work.takeHeld(lease, id, clock());
  };
  return { countQuestion, hold: Object.assign(hold, { run: rootId }) };
}
