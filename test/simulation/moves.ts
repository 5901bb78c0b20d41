/** The tables of moves that agents without a model make, and what their threads keep. */
import type { InboxMessage } from "../../src/agent/contracts/state.ts";
import { generator } from "./virtual-machine.ts";

/** The tokens that a run may use with its background agents; a few worlds have little. */
export const TOKEN_LIMITS = { usual: 400, low: 20 };

export type Move = "say" | "act" | "approve" | "ask" | "child" | "wait" | "write";

/** The work of one run in a thread. */
export interface Part {
  task: string;
  moves: readonly Move[];
  /** Number of moves that are made. */
  done: number;
  tokens: number;
  inbox: Map<string, InboxMessage>;
  /** Background runs that it started. */
  children: string[];
  pending?: { id: string; reply?: unknown };
  isFinished?: true;
}

/** Tokens of each reply. */
export const REPLY = { inputTokens: 8, outputTokens: 2, cachedInputTokens: 0 };
export const REPLY_TOKENS = REPLY.inputTokens + REPLY.outputTokens;
const MOVES: readonly Move[] = ["say", "say", "act", "act", "act", "approve", "ask", "child", "child"];

/** The table of moves for a task such as `task 7`, or `child 7.1`, which starts no others. `talks`: it says more. */
export function movesFor(task: string, talks: boolean): Move[] {
  const draw = generator(Buffer.from(task).reduce((sum, byte) => Math.imul(sum, 31) + byte, 7));
  const isChild = task.startsWith("child");
  const moves = Array.from({ length: 2 + Math.floor(draw() * (isChild ? 3 : 7)) }, () => {
    const move = MOVES[Math.floor(draw() * MOVES.length)] ?? "say";
    if (task.startsWith("propose") && (move === "act" || move === "child" || draw() < 0.4)) return "write";
    if (talks && (move === "act" || move === "ask")) return "say";
    return isChild && move === "child" ? "act" : move;
  });
  // Without waiting itself, the run waits for its background agents when it ends.
  return moves.includes("child") && draw() < 0.6 ? [...moves, "wait"] : moves;
}
