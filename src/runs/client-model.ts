import type { ModelLender } from "../agent/agent.ts";
import { RunFailure } from "../core/errors.ts";
import type { RunContext } from "./context.ts";
import type { Lease } from "./ports.ts";

interface LendingContext extends Pick<RunContext, "work" | "runs" | "feed" | "clock"> {
  /** Time that a run keeps its place while it waits for a model call, in ms. */
  patienceMs: number;
}

export interface WorkerOfRun {
  lease: Lease;
  /** The run cannot continue here: its lease is lost, or its request cannot be stored. */
  onFailure: (error: unknown) => void;
}

/**
 * Sends the model calls of one run to its principal's clients. A call is stored before any client gets it, and its
 * reply before the agent gets it. A call that is repeated after a crash or a pause finds the stored one. Only the
 * holder of the run's lease asks.
 */
export function lenderFor({ lease, onFailure }: WorkerOfRun, context: LendingContext): ModelLender {
  const { work, runs, feed, clock, patienceMs } = context;
  const write = async <T>(change: () => Promise<T>): Promise<T> => {
    try {
      return await change();
    } catch (error) {
      onFailure(error);
      throw error;
    }
  };
  return {
    reply: async (request, signal) => {
      const { id, reply } = await write(() => work.askModel(lease, request, clock()));
      if (reply !== undefined) return reply;
      const { principal, runId } = lease;
      const patience = AbortSignal.timeout(patienceMs);
      const stop = signal === undefined ? patience : AbortSignal.any([patience, signal]);
      const inTime = await feed.wait(runId, stop, () => runs.read.modelReply(principal, runId, id));
      if (inTime === undefined) signal?.throwIfAborted();
      return inTime ?? write(() => work.awaitModel(lease, id, clock()));
    },
  };
}

/** For an agent that is only looked at or asked about a call: it never calls a model. */
export const NO_LENDER: ModelLender = {
  reply: () => Promise.reject(new Error("Only an agent at work asks its model.")),
};

/** For an agent that works in the background: no client waits for it. */
export const BACKGROUND_LENDER: ModelLender = {
  reply: () => Promise.reject(new RunFailure("configuration", NOT_LENT)),
};

const NOT_LENT =
  "A background task cannot use the model that a client lends. Start the run again, or configure another model.";
