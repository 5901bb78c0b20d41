import { answeredEntry } from "../../runs/asked-events.ts";
import * as journal from "./journal.ts";
import * as requests from "./requests.ts";
import { type Asker, toRequest } from "./rows.ts";
import type { Steps } from "./steps.ts";

/** Withdraws pending requests, but for open interrupts. Belongs into the transaction of that change. */
export function* withdraw(
  whose: Asker,
  by: string,
  now: number,
  openInterrupts?: readonly string[],
): Steps<void> {
  for (const row of yield* requests.withdraw(whose, now, openInterrupts))
    yield* journal.append(whose.root, answeredEntry(toRequest(row), undefined, by), now);
}
