/** Asks a person while a call of a run is at work: the run keeps its lease, and the question is withdrawn after a while. */
import type { WorkOptions } from "../agent/agent.ts";
import type { RunContext } from "./context.ts";
import type { Lease } from "./ports.ts";

interface HoldContext extends Pick<RunContext, "work" | "read" | "feed" | "clock" | "newId"> {
  /** Time that a call waits for an answer, in ms. */
  patienceMs: number;
}

export function holderFor(
  lease: Lease,
  { work, read, feed, clock, newId, patienceMs }: HoldContext,
): NonNullable<WorkOptions["hold"]> {
  return async ({ agent, question }, signal) => {
    const id = newId("held");
    await work.askQuestion(lease, { id, agent, question }, clock());
    const stop = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
    await feed.wait(lease.rootId, stop, async () => {
      const asked = await read.question(lease.principal, lease.rootId, id);
      return asked?.status === "pending" ? undefined : true;
    });
    signal.throwIfAborted();
    return work.takeHeld(lease, id, clock());
  };
}
