/** The calls of people about one conversation, and the outcomes that these have one after the other. */
import type { Call, Model } from "./linearizable.ts";

export type Operation =
  | { kind: "answer"; runId: string; requestId: string; given: string }
  | { kind: "cancel"; runId: string }
  | { kind: "tell"; runId: string; key: string }
  /** Starts a run in the thread, or sends a message to the one at work in it. */
  | { kind: "continue"; runId: string; key: string }
  /** Applies a proposed change after the end of its run. */
  | { kind: "apply"; runId: string }
  /** A run ends by itself, at a time that nobody knows. */
  | { kind: "end"; runId: string; status: string };

export type PersonCall = Call<Operation>;

/** What is stored in the end. */
export interface Stored {
  /** The runs of the thread, oldest first. `key`: the idempotency key of the call that started it. */
  runs: readonly { id: string; status: string; key: string | null }[];
  /** The answer of each request; undefined if it was withdrawn. */
  answers: ReadonlyMap<string, string | undefined>;
}

interface State {
  /** The status of each run so far: `open`, or as it ended. */
  runs: Readonly<Record<string, string>>;
  newest: string;
  /** The run that got a message or was started, by the key. */
  keys: Readonly<Record<string, string>>;
  answers: Readonly<Record<string, string>>;
  /** Nothing of the proposed change is left. */
  isApplied: boolean;
}

/** `calls` get those by which the runs ended on their own. */
export function conversation(
  calls: readonly PersonCall[],
  stored: Stored,
): { calls: PersonCall[]; model: Model<State, Operation> } {
  const [first] = stored.runs;
  const initial: State = {
    runs: first === undefined ? {} : { [first.id]: "open" },
    newest: first?.id ?? "",
    keys: {},
    answers: {},
    isApplied: false,
  };
  const ends = stored.runs
    .filter(({ status }) => status !== "cancelled")
    .map(({ id: runId, status }): PersonCall => ({
      operation: { kind: "end", runId, status },
      beganAt: 0,
      endedAt: Infinity,
      outcome: "ended",
    }));
  const isEnd = ({ runs, answers }: State): boolean =>
    stored.runs.every(({ id, status }) => runs[id] === status) &&
    Object.entries(answers).every(([id, given]) => sameAnswer(given, stored.answers.get(id)));
  return {
    calls: [...withoutEqual(calls, stored), ...ends],
    model: { initial, next: nextOf(stored), isEnd },
  };
}

/**
 * Of equal calls whose outcomes nobody knows, the first: it may take place whenever another one may, and only one of them
 * has an effect. An answer that is not stored had none.
 */
function withoutEqual(calls: readonly PersonCall[], { answers }: Stored): PersonCall[] {
  const first = new Map<string, PersonCall>();
  for (const call of calls) {
    const { operation, outcome, beganAt } = call;
    if (outcome !== undefined || operation.kind === "apply") continue;
    if (operation.kind === "answer" && !sameAnswer(operation.given, answers.get(operation.requestId)))
      continue;
    const key = JSON.stringify(operation);
    if (beganAt < (first.get(key)?.beganAt ?? Infinity)) first.set(key, call);
  }
  return [...calls.filter(({ outcome }) => outcome !== undefined), ...first.values()];
}

/** A new state, if the call has this outcome or nobody knows which. */
const nextOf =
  (stored: Stored) =>
  (state: State, operation: Operation, outcome: string | undefined): State | undefined => {
    const [expected, after] = expectedOf(state, operation, stored, outcome);
    return outcome === undefined || expected.includes(outcome) ? after : undefined;
  };

/** The outcomes that a call may have, and the state after it. */
function expectedOf(
  state: State,
  operation: Operation,
  stored: Stored,
  outcome: string | undefined,
): [string[], State] {
  const { runs, newest, keys, answers } = state;
  const status = runs[operation.runId];
  switch (operation.kind) {
    case "end":
      return status === "open" ? [["ended"], ended(state, operation.runId, operation.status)] : [[], state];
    case "cancel":
      if (status === "open") return [["cancelled"], ended(state, operation.runId, "cancelled")];
      return [[`ended: ${status}`], state];
    case "answer": {
      const { requestId, given } = operation;
      const before = answers[requestId];
      if (before !== undefined) return [[sameAnswer(before, given) ? "repeated" : "already_answered"], state];
      // It may have been withdrawn before its run ended.
      if (status !== "open" || stored.answers.get(requestId) === undefined)
        return [["already_answered"], state];
      return [["stored"], { ...state, answers: { ...answers, [requestId]: given } }];
    }
    case "tell": {
      const known = keys[operation.key];
      if (known !== undefined) return [[known === operation.runId ? "repeated" : "conflict"], state];
      if (status !== "open") return [["ended"], state];
      return [["sent"], { ...state, keys: { ...keys, [operation.key]: operation.runId } }];
    }
    case "continue": {
      const { key } = operation;
      if (keys[key] !== undefined) return [["existing"], state];
      if (runs[newest] === "open") return [["told"], { ...state, keys: { ...keys, [key]: newest } }];
      const started = stored.runs.find((run) => run.key === key)?.id;
      if (started === undefined) return [[], state];
      const changed = { newest: started, runs: { ...runs, [started]: "open" }, isApplied: false };
      return [["started"], { ...state, ...changed, keys: { ...keys, [key]: started } }];
    }
    case "apply": {
      // It waited in vain for others who work on the copy.
      if (outcome === "busy") return [["busy"], state];
      if (status === "open" || runs[newest] === "open") return [["open"], state];
      const nothing = ["nothing_proposed", "not_applied", "invalid", "applied nothing"];
      if (state.isApplied) return [nothing, state];
      const after = outcome === "applied all" ? { ...state, isApplied: true } : state;
      return [[...nothing, "applied all", "applied some"], after];
    }
  }
}

const ended = (state: State, runId: string, status: string): State => ({
  ...state,
  runs: { ...state.runs, [runId]: status },
});

function sameAnswer(one: string, other: string | undefined): boolean {
  if (other === undefined) return false;
  const [a, b] = [one, other].map(
    (text) => JSON.parse(text) as { type: string; values?: unknown; choice?: unknown },
  );
  return (
    a?.type === b?.type && JSON.stringify([a?.values, a?.choice]) === JSON.stringify([b?.values, b?.choice])
  );
}
