/** Describes a request in words: the call by its act and its object, and its outcome. */
import { displayName, headOf, oneLine, tailOf } from "../core/text.ts";
import words from "./words.json" with { type: "json" };
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
  const { kind, summary, title, detail } = preview;
  if (kind === "command")
    return { act: "Run", object: oneLine(displayName(detail), MAX_COMMAND), kind: "command" };
  const [path, act] = [args["file_path"], summary.split(" ", 1)[0] ?? ""];
  // Summaries of the tools that change files begin with one of these.
  const isChange = ["Change", "Create", "Delete", "Edit", "Overwrite", "Write"].includes(act);
  return typeof path === "string" && path !== "" && isChange
    ? { act, object: path, kind: "file" }
    : act === "Read" && tool === "web_fetch"
      ? { act, object: oneLine(summary.slice("Read ".length), MAX_COMMAND), kind: "tool" }
      : { act: "Call", object: displayName(title ?? tool), kind: "tool" };
}

/** The object on one line. A file of the workspace is named by its path there. */
export function objectText({ object, kind }: AskedCall): string {
  if (kind !== "file") return object;
  const path = displayName(object).replace(/^\/workspace\/(?=.)/, "");
  return path.length <= MAX_PATH ? path : `${headOf(path, MAX_PATH / 2)}…${tailOf(path, MAX_PATH / 2)}`;
}

/** Such as ``run `node --test` `` or `edit src/alarms.ts`. */
export const askedCallText = (call: AskedCall, act = call.act.toLowerCase()): string =>
  `${act} ${call.kind === "command" ? `\`${objectText(call)}\`` : objectText(call)}`;

/** Describes a decision. `person`: who made it, for a reader whom this tells more than its channel. */
export function decidedText(
  { tool, call, decision, by }: { tool: string; call?: AskedCall | undefined; decision: string; by: string },
  person?: string,
): string {
  const request = call === undefined ? tool : askedCallText(call);
  const what = call === undefined ? `calling ${tool}` : askedCallText(call, DOING[call.act]);
  if (by === DEADLINE) return `denied ${what}, because nobody decided in time`;
  if (decision === "withdrawn") return `cancelled request: ${request}`;
  if (by.startsWith(BY_RULE)) return `${byRuleText(by)}: ${request}`;
  const [decided = "decided on", how = ""] = DECIDED[decision] ?? [];
  if (by.startsWith(sameAs(""))) return `${decided} ${what} as before`;
  return person === undefined ? `${decided} ${what}${how} (${by})` : `${person} ${decided} ${what}${how}`;
}

/** `by`: the decider of a call that rules allowed. */
export const byRuleText = (by: string): string => `allowed by your ${displayName(oneLine(by, MAX_COMMAND))}`;

const DOING: Readonly<Record<string, string>> = words.doing;
const DECIDED: Readonly<Record<string, readonly string[]>> = words.decided;

export function answeredText(outcome: string, answer: string | undefined, by: string): string {
  if (outcome === "expired") return "continued without an answer, because nobody answered in time";
  if (outcome === "withdrawn") return "cancelled the question";
  return outcome === "declined" ? `got no answer (${by})` : `got the answer: ${answer ?? ""} (${by})`;
}
