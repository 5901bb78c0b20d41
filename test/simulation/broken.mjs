/**
 * Faults that this program once had, or would have without one line: `npm run simulate -- --break NAME` builds it in
 * again. The simulation has to find each of them, by one of the invariants `finds`.
 */
export const BROKEN = {
  "journal lag": {
    finds: ["use", "journal"],
    before: "c05d93d7: results were stored before the events that they follow from",
    file: "src/runs/execution.ts",
    line: "    return last;",
    instead: "    return Promise.resolve();",
  },
  "unreserved replies": {
    finds: ["limit"],
    before: "c05d93d7: agents in the background did not count each other's replies under way",
    file: "src/runs/sql/children.ts",
    line: "  if (!fits(others, reserved)) return false;",
    instead: "  if (!fits({ ...others, tokens: 0 }, 0)) return false;",
  },
  "answer before its question": {
    finds: ["no-internal-errors"],
    before:
      "07cd489a: after a crash, an answer could come before the checkpoint with its question, and was lost",
    file: "src/runs/sql/work.ts",
    line: "      const taken = delivered.filter(({ interruptId, again }) => again || !askedAgain.has(interruptId));",
    instead: "      const taken = delivered;",
  },
  "report left behind": {
    finds: ["message-once"],
    before: "the parent's last message was not checked when it ended",
    file: "src/runs/sql/work.ts",
    line: '      if (yield* messages.hasNewerThan(row.id, inbox.read)) return "unread";',
    instead: "",
  },
  "lease without its number": {
    finds: ["journal", "effect-once", "no-internal-errors"],
    before: "a server that had lost a run and claimed it again took both claims for one",
    file: "src/runs/sql/leases.ts",
    line: 'const IS_HELD = "id = @id AND lease_owner = @owner AND lease_epoch = @epoch";',
    instead: 'const IS_HELD = "id = @id";',
  },
  "effect forgotten": {
    finds: ["no-internal-errors"],
    before: "a call that had begun on another server was taken for a new one",
    file: "src/runs/sql/effects.ts",
    line: "        if (lease.epoch === 1 && !begun.has(effectKey(lease, call).call)) return undefined;",
    instead: "        if (!begun.has(effectKey(lease, call).call)) return undefined;",
  },
  "another answer confirmed": {
    finds: ["order"],
    before: "without this condition, people are told that their answer counts when another one does",
    file: "src/runs/answer.ts",
    line: "  if (isGranted || isRepeated(now, given))",
    instead: "  if (now.answer !== undefined)",
  },
  "every other due time": {
    finds: ["schedule-once"],
    before: "until it looked at shorter times, the check of schedules found nothing",
    file: "src/runs/sql/schedules.ts",
    line: "(start?.from ?? dueAt) : dueAt });",
    instead: "(start?.from ?? dueAt) : dueAt + 60_000 });",
  },
  "children left open": {
    finds: ["ends", "children"],
    before: "a run ended and left its background runs open",
    file: "src/runs/sql/work.ts",
    line: "      else if (yield* hasOpenChildren(row.id)) {",
    instead: "      else if (false) {",
  },
  "lock on a proposed change": {
    finds: ["ends"],
    before: "ef745549: a killed server's lock on a copy stayed while another process had its process id",
    file: "src/proposals/proposals.ts",
    line: "    if (fence !== undefined || isGone(owner)) breakLock(",
    instead: "    if (false) breakLock(",
  },
};
