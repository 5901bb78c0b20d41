/** The threads of runs. */
import type { Principal } from "../../runs/run.ts";
import { type Steps, change } from "./steps.ts";

/**
 * Notes a thread that is being made as a copy of another. Its checkpoints may be stored elsewhere, so the note is
 * here before they are, until the thread is in use or given up.
 */
export function* beginCopy(principal: Principal, id: string, now: number): Steps<void> {
  yield* change("INSERT INTO thread_copies (id, principal, begun_at) VALUES (@id, @principal, @now)", {
    id,
    principal,
    now,
  });
}

/** False if the copy was given up in between. */
export function* takeCopy(principal: Principal, id: string): Steps<boolean> {
  const sql = "DELETE FROM thread_copies WHERE id = @id AND (principal = @principal OR principal IS NULL)";
  return (yield* change(sql, { id, principal })) === 1;
}

export function* addThread(principal: Principal, id: string, now: number): Steps<void> {
  yield* change("INSERT INTO threads (id, principal, created_at) VALUES (@id, @principal, @now)", {
    id,
    principal,
    now,
  });
}
