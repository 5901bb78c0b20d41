/** Describes a request in words: the call by its act and its object, and its outcome. */
import { displayName, headOf, oneLine, tailOf } from "../core/text.ts";
import { type Approval, BY_RULE, DEADLINE, sameAs } from "./run.ts";

const MAX_COMMAND = 200;
const MAX_PATH = 120;

export interface AskedCall {
  /** Such as `Run`, `Edit` or `Call`. */
  act: string;
  /** The command on one line, the whole path, or the name of the tool. */
  object: string;
  kind: "command" | "file" | "tool";
}

export function askedCall({ preview, tool, args }: Pick<Approval, "preview" | "tool" | "args">): AskedCall {
  const { kind, summary, detail } = preview;
  if (kind === "command")
    return { act: "Run", object: oneLine(displayName(detail), MAX_COMMAND), kind: "command" };
  const [path, act] = [args["file_path"], summary.split(" ", 1)[0] ?? ""];
  // Summaries of the tools that change files begin with one of these.
  const isChange = ["Change", "Create", "Delete", "Edit", "Overwrite", "Write"].includes(act);
  return typeof path === "string" && path !== "" && isChange
    ? { act, object: path, kind: "file" }
    : { act: "Call", object: displayName(tool), kind: "tool" };
}

/** The object on one line. A file of the workspace is named by its path there. */
export function objectText({ object, kind }: AskedCall): string {
  if (kind !== "file") return object;
  const path = displayName(object).replace(/^\/workspace\/(?=.)/, "");
  return path.length <= MAX_PATH ? path : `${headOf(path, MAX_PATH / 2)}…${tailOf(path, MAX_PATH / 2)}`;
}

/** Such as ``Run `node --test` `` or `Edit src/alarms.ts`. */
export function askedCallText(call: AskedCall): string {
  const object = objectText(call);
  return `${call.act} ${call.kind === "command" ? `\`${object}\`` : object}`;
}

export function decidedText(decision: string, by: string): string {
  if (by === DEADLINE) return "denied, because nobody decided in time";
  const decided = DECIDED[decision] ?? "decided";
  if (decision === "withdrawn") return decided;
  if (by.startsWith(BY_RULE)) return byRuleText(by);
  return by.startsWith(sameAs("")) ? `${decided} as before` : `${decided} (${by})`;
}

/** `by`: the decider of a call that rules allowed. */
export const byRuleText = (by: string): string => `allowed by your ${displayName(oneLine(by, MAX_COMMAND))}`;

const DECIDED: Readonly<Record<string, string>> = {
  approve: "approved",
  approve_same: "approved for the whole run",
  approve_always: "approved, with a rule for later calls",
  edit: "approved with changes",
  reject: "rejected",
  withdrawn: "no longer needed",
};

export function answeredText(outcome: string, answer: string | undefined, by: string): string {
  if (outcome === "expired") return "continued without an answer, because nobody answered in time";
  if (outcome === "withdrawn") return "needs no answer any more";
  if (outcome === "declined") return `got no answer (${by})`;
  return `was answered: ${answer ?? ""} (${by})`;
}
