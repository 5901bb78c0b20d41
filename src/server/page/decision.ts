import { type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { defined } from "../../core/defined.ts";
import { canonicalJson } from "../../core/json.ts";
import { parsedJson } from "../../core/unknown.ts";
import type { Approval, PersonDecision } from "../../runs/run.ts";
import { Arguments } from "../views/approval-form.ts";
import { editableArguments, unmarked } from "../views/room/editable-arguments.ts";
import type { ScreenContext } from "./screen.ts";

/** The decision that a person sent, or the reason why it is none. */
export type PageDecision = { ok: true; decision: PersonDecision } | ({ ok: false } & Problem);

interface Problem {
  problem: string;
  /** The field it is about. */
  field?: string;
  /** Its place, both counted from 1. */
  line?: number;
  column?: number;
}

/** Only a pressed button decides. Approving with changed arguments is refused: they would be lost. */
export function pageDecision(approval: Approval, form: URLSearchParams): PageDecision {
  const decision = form.get("decision");
  const edited = editedArguments(approval, form);
  if (decision === "approve" || decision === "approve_same") {
    const isSame =
      edited === "none" || (edited !== "broken" && canonicalJson(edited) === canonicalJson(approval.args));
    if (isSame) return { ok: true, decision: { type: decision } };
    return {
      ok: false,
      problem: "You changed the arguments. Choose “Approve with changes”, or undo the changes.",
    };
  }
  if (decision === "reject") {
    const message = (form.get("message") ?? "").trim().slice(0, 2000) || undefined;
    return { ok: true, decision: { type: "reject", ...defined({ message }) } };
  }
  if (decision !== "edit" || edited === "none")
    return { ok: false, problem: "No decision was sent. Press one of the buttons." };
  if (edited === "broken")
    return { ok: false, field: "edited_args", ...jsonProblem(form.get("edited_args") ?? "", NO_OBJECT) };
  return { ok: true, decision: { type: "edit", editedAction: { name: approval.tool, args: edited } } };
}

/** Checks arguments that a person is still editing, as if they were sent now. */
export async function editProblem(
  { runs }: ScreenContext,
  runId: string,
  form: URLSearchParams,
): Promise<Problem | undefined> {
  const approvalId = form.get("approval") ?? "";
  const view = await runs.read.view(runId);
  const approval = view?.approvals.find(({ id }) => id === approvalId);
  if (approval?.status !== "pending") return undefined;
  form.set("decision", "edit");
  const read = pageDecision(approval, form);
  if (!read.ok) {
    const { ok: _ok, ...problem } = read;
    return problem;
  }
  const problem = await runs.requests.problemOf(runId, approvalId, read.decision);
  return problem === undefined ? undefined : { problem };
}

function editedArguments(
  approval: Approval,
  form: URLSearchParams,
): Record<string, unknown> | "none" | "broken" {
  const json = form.get("edited_args");
  if (json === null) return "none";
  const { data: others } = Arguments.safeParse(parsedJson(json));
  if (others === undefined) return "broken";
  const { text } = editableArguments(approval);
  const typed = form.get("edited_text");
  return text === undefined || typed === null ? others : { ...others, [text.name]: unmarked(typed) };
}

const NO_OBJECT = "The changed arguments are not a JSON object";

/** Explains why a text is not the JSON that it should be; `what` says so without a reason. */
export function jsonProblem(text: string, what: string): Problem {
  const error = firstError(text);
  if (error === undefined) return { problem: `${what}.` };
  const before = text.slice(0, error.offset).split("\n");
  const [line, column] = [before.length, (before.at(-1) ?? "").length + 1];
  const why = JSON_ERRORS[printParseErrorCode(error.error)] ?? "something does not belong there";
  return { problem: `${what}: in line ${line}, column ${column}, ${why}.`, line, column };
}

function firstError(text: string): ParseError | undefined {
  const errors: ParseError[] = [];
  try {
    parseTree(text, errors, { disallowComments: true });
  } catch {
    return undefined; // nested too deeply
  }
  return errors[0];
}

/** By the names of the parser. */
const JSON_ERRORS: Readonly<Record<string, string>> = {
  InvalidSymbol: "a word does not belong there",
  InvalidNumberFormat: "a number is not well formed",
  PropertyNameExpected: "a name in double quotes is expected",
  ValueExpected: "a value is expected",
  ColonExpected: "a colon is expected",
  CommaExpected: "a comma is expected",
  CloseBraceExpected: "a closing brace is expected",
  CloseBracketExpected: "a closing bracket is expected",
  EndOfFileExpected: "nothing more is expected",
  InvalidCommentToken: "a comment is not allowed",
  UnexpectedEndOfComment: "a comment has no end",
  UnexpectedEndOfString: "a text has no closing quote",
  UnexpectedEndOfNumber: "a number has no end",
  InvalidUnicode: "four hexadecimal digits are expected",
  InvalidEscapeCharacter: "a backslash is followed by the wrong character",
  InvalidCharacter: "a character has to be escaped",
};
