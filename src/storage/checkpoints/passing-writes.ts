import type { PendingWrite } from "@langchain/langgraph-checkpoint";
import type { GraphAddress } from "./address.ts";

/** Channel of writes that count only until the next checkpoint: the calls of a program that has not ended. */
export const PASSING = "__deepagent_program";

/** Knows which checkpoints have such writes, so that those can be deleted when the next checkpoint is stored. */
export class PassingWrites {
  readonly #places = new Set<string>();

  /** `writes`: to a checkpoint, with or without their tasks. */
  note(graph: GraphAddress, checkpoint: string, writes: readonly (readonly unknown[] | PendingWrite)[]) {
    if (writes.some((write) => write.includes(PASSING))) this.#places.add(checkpointKey(graph, checkpoint));
  }

  /** True once for a checkpoint that has such writes. */
  take(graph: GraphAddress, checkpoint: string | undefined): checkpoint is string {
    return checkpoint !== undefined && this.#places.delete(checkpointKey(graph, checkpoint));
  }
}

const checkpointKey = ({ thread, namespace }: GraphAddress, checkpoint: string): string =>
  JSON.stringify([thread, namespace, checkpoint]);
