import { answeredEntry, decidedEntry } from "../../runs/asked-events.ts";
import * as journal from "./journal.ts";
import * as questions from "./questions.ts";
import { type Asker, toApproval, toQuestion } from "./rows.ts";
import type { Steps } from "./steps.ts";

/** Withdraws what is pending, but for open interrupts. Belongs into the transaction of what made it needless. */
export function* withdraw(
  whose: Asker,
  by: string,
  now: number,
  openInterrupts?: readonly string[],
): Steps<void> {
  for (const row of yield* questions.withdraw(whose, now, openInterrupts)) {
    const entry =
      row.kind === "approval"
        ? decidedEntry(toApproval(row), "withdrawn", by)
        : answeredEntry(toQuestion(row), undefined, by);
    yield* journal.append(whose.root, entry, now);
  }
}
