/** The threads of runs. */
import type { Principal } from "../run.ts";
import { type Steps, change, insert } from "./steps.ts";

/** Notes a thread that is being copied before its checkpoints are stored, until it is in use or dropped. */
export function* beginCopy(principal: Principal, id: string, now: number): Steps<void> {
  yield* insert("thread_copies", { id, principal, begun_at: now });
}

/** False if the copy was dropped in between. */
export function* takeCopy(principal: Principal, id: string): Steps<boolean> {
  const sql = "DELETE FROM thread_copies WHERE id = @id AND (principal = @principal OR principal IS NULL)";
  return (yield* change(sql, { id, principal })) === 1;
}

export function* addThread(principal: Principal, id: string, now: number): Steps<void> {
  yield* insert("threads", { id, principal, created_at: now });
}

/** The values of a run that begins. */
export const begunAt = (now: number) => ({
  status: "working",
  created_at: now,
  updated_at: now,
  runnable_since: now,
});
