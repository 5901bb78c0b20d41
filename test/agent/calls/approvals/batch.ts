import fc from "fast-check";
import type { Decision } from "../../../../src/tools/request.ts";
import type { ScriptedToolCall } from "../../../support/scripted-model.ts";

type FittingAnswer = "approve" | "edit" | "reject";
export type Answer = FittingAnswer | "edit_invalid";
/**
 * One call of a batch: with an effect outside and a person to ask (`gated`), a thread file to be approved
 * (`file`), an effect nobody is asked about (`free`), one without effect (`look`), or a subagent with a
 * batch of its own: built with the agent (`worker`), going on from its conversation (`twin`), or compiled
 * before (`compiled`). A `swap` is changed by middleware once it is approved, and asked about `again`.
 */
export type Call =
  | { kind: "gated" | "file"; answer: Answer }
  | { kind: "swap"; answer: FittingAnswer; again: FittingAnswer }
  | { kind: "free" | "look" }
  | { kind: "task"; to?: "worker" | "twin" | "compiled"; calls: Call[] };

/** A call that is no delegation, by where in the tree it is. */
export interface Leaf {
  key: string;
  call: Exclude<Call, { kind: "task" }>;
}

const answer = fc.constantFrom<Answer>("approve", "edit", "reject", "edit_invalid");
const gated = fc.record({ kind: fc.constantFrom("gated" as const, "file" as const), answer });
const fitting = fc.constantFrom<FittingAnswer>("approve", "edit", "reject");
const swap = fc.record({ kind: fc.constant("swap" as const), answer: fitting, again: fitting });
const free = fc.record({ kind: fc.constantFrom("free" as const, "look" as const) });
const task = (calls: fc.Arbitrary<Call[]>): fc.Arbitrary<Call> =>
  calls.map((own) => ({ kind: "task", calls: own }));
const leaf: fc.Arbitrary<Call> = fc.oneof(
  { weight: 3, arbitrary: gated },
  { weight: 1, arbitrary: swap },
  { weight: 2, arbitrary: free },
);
const inner = fc.array(leaf, { minLength: 1, maxLength: 3 });
/** Those that delegate no further. */
const last: fc.Arbitrary<Call> = fc.record({
  kind: fc.constant("task" as const),
  to: fc.constantFrom("worker" as const, "twin" as const, "compiled" as const),
  calls: inner,
});
const level = (below: fc.Arbitrary<Call>): fc.Arbitrary<Call[]> =>
  fc.array(
    fc.oneof({ weight: 6, arbitrary: leaf }, { weight: 1, arbitrary: last }, { weight: 1, arbitrary: below }),
    { minLength: 1, maxLength: 3 },
  );

/** Levels of delegation that a batch may have. */
export const DEPTH = 3;

/** What the main agent calls in one reply. */
export const batch = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: leaf },
    { weight: 1, arbitrary: last },
    { weight: 2, arbitrary: task(level(task(level(last)))) },
  ),
  { minLength: 1, maxLength: 8 },
);

/** Calls as a model makes them; a key says where in the tree a call is. */
export function toolCallsOf(calls: readonly Call[], prefix: string): ScriptedToolCall[] {
  return calls.map((call, index) => {
    const key = `${prefix}${index}`;
    if (call.kind === "file") return { id: key, name: "write_file", args: fileArgs(key, "asked") };
    if (call.kind !== "task") return { id: key, name: call.kind, args: { key, value: "asked" } };
    const description = JSON.stringify({ calls: call.calls, prefix: `${key}_` });
    return { id: key, name: "task", args: { description, subagent_type: call.to ?? "worker" } };
  });
}

export const leavesOf = (calls: readonly Call[], prefix = ""): Leaf[] =>
  calls.flatMap((call, index) =>
    call.kind === "task" ? leavesOf(call.calls, `${prefix}${index}_`) : [{ key: `${prefix}${index}`, call }],
  );

/** What the person says first to the question about a call as it is shown; none for calls that need no person. */
export function answerTo({ call }: Leaf, value: unknown): Answer | undefined {
  if (!("answer" in call)) return undefined;
  return call.kind === "swap" && value === "swapped" ? call.again : call.answer;
}

/** The value that a call may run with; `undefined`: it must not run. */
export function allowedValue({ call }: Leaf): string | undefined {
  if (!("answer" in call)) return "asked";
  if (call.answer === "edit") return "changed";
  if (call.answer !== "approve") return undefined;
  if (call.kind !== "swap") return "asked";
  return { approve: "swapped", edit: "changed", reject: undefined }[call.again];
}

export function decisionOf({ key, call }: Leaf, answer: Answer): Decision {
  if (answer === "approve" || answer === "reject") return { type: answer };
  const value = answer === "edit" ? "changed" : "nonsense";
  const args = call.kind === "file" ? fileArgs(key, answer === "edit" ? value : undefined) : { key, value };
  return { type: "edit", editedAction: { name: call.kind === "file" ? "write_file" : call.kind, args } };
}

const fileArgs = (key: string, content: string | undefined): Record<string, unknown> => ({
  file_path: `/${key}.md`,
  content,
});
