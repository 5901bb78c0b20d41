/** Reads the form of a request. */
import { type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { canonicalJson } from "../../core/json.ts";
import { isRecord, parsedJson, defined } from "../../core/unknown.ts";
import { type Approval, type OpenQuestion, type RunRequest, isApproval } from "../../runs/run.ts";
import { fieldProblem, fieldsOf } from "../../tools/check-answer.ts";
import type { Field, PersonAnswer } from "../../tools/request.ts";
import { editableArguments, unmarked } from "../views/room/editable-arguments.ts";
import { OTHER, otherName } from "../views/room/question-fields.ts";
import jsonErrors from "./json-errors.json" with { type: "json" };
import { textOf, typedIn } from "./responses.ts";
import type { ScreenContext } from "./screen-context.ts";

/** The answer that a person sent, or the reason why it is none. */
export type PageAnswer = { ok: true; answer: PersonAnswer } | ({ ok: false } & Problem);

interface Problem {
  problem: string;
  field?: string;
  /** Its place, both counted from 1. */
  line?: number;
  column?: number;
  /** The problem of each field by its name, if several do not fit. */
  fields?: ReadonlyMap<string, string>;
}

/** Only a pressed button answers. */
export const pageAnswer = (request: RunRequest, form: URLSearchParams): PageAnswer =>
  isApproval(request) ? readDecision(request, form) : readAnswer(request, form);

/** Approving with changed arguments is refused: they would be lost. */
function readDecision(approval: Approval, form: URLSearchParams): PageAnswer {
  const decision = form.get("decision");
  const edited = editedArguments(approval, form);
  if (decision === "approve" || decision === "approve_same" || decision === "approve_always") {
    const isSame =
      edited === "none" || (edited !== "broken" && canonicalJson(edited) === canonicalJson(approval.args));
    const rule = form.get("rule") ?? "";
    if (isSame && decision !== "approve_always") return { ok: true, answer: { type: decision } };
    if (isSame && rule === "")
      return { ok: false, problem: "Choose the calls that are allowed from now on." };
    if (isSame) return { ok: true, answer: { type: "approve_always", rules: [rule] } };
    return {
      ok: false,
      problem: "You changed the arguments. Choose “Approve with changes”, or undo the changes.",
    };
  }
  if (decision === "reject") {
    const message = (form.get("message") ?? "").trim().slice(0, 2000) || undefined;
    return { ok: true, answer: { type: "reject", ...defined({ message }) } };
  }
  if (decision !== "edit" || edited === "none")
    return { ok: false, problem: "No decision was sent. Press one of the buttons." };
  if (edited === "broken")
    return {
      ok: false,
      field: "edited_args",
      ...jsonProblem(form.get("edited_args") ?? "", "The changed arguments are not a JSON object"),
    };
  return { ok: true, answer: { type: "edit", editedAction: { name: approval.tool, args: edited } } };
}

/** Checks arguments that a person is still editing, as if they were sent now. */
export async function editProblem(
  { runs }: ScreenContext,
  runId: string,
  form: URLSearchParams,
): Promise<Problem | undefined> {
  const requestId = form.get("request") ?? "";
  const request = (await runs.read.view(runId))?.requests.find(({ id }) => id === requestId);
  if (request === undefined || !isApproval(request) || request.status !== "pending") return undefined;
  form.set("decision", "edit");
  const read = readDecision(request, form);
  if (!read.ok) {
    const { ok: _ok, ...problem } = read;
    return problem;
  }
  const problem = await runs.requests.problemOf(runId, { requestId, answer: read.answer });
  return problem === undefined ? undefined : { problem };
}

function readAnswer(question: OpenQuestion, form: URLSearchParams): PageAnswer {
  const act = form.get("act");
  if (act === "opened") return { ok: true, answer: { type: "opened" } };
  if (act === "decline") {
    const message = textOf(form, "message").slice(0, 2000) || undefined;
    return { ok: true, answer: { type: "decline", ...defined({ message }) } };
  }
  if (act !== "answer") return { ok: false, problem: "No answer was sent. Press one of the buttons." };
  const fields = fieldsOf(question);
  return fields === undefined ? freeAnswer(form) : fieldAnswer(fields, form);
}

function freeAnswer(form: URLSearchParams): PageAnswer {
  const text = typedIn(form, "v0");
  if (text.trim() === "") return { ok: false, problem: "Write an answer, or decline." };
  if (form.get("as") !== "json") return { ok: true, answer: { type: "value", value: text } };
  const value = parsedJson(text);
  if (value === undefined) return { ok: false, problem: jsonProblem(text, "The answer is not JSON").problem };
  return { ok: true, answer: { type: "value", value } };
}

function fieldAnswer(fields: readonly Field[], form: URLSearchParams): PageAnswer {
  const values = fields.map((field, index) => [field, readValue(field, `v${index}`, form)] as const);
  const wrong = new Map(
    values.flatMap(([field, value]) => {
      const problem = fieldProblem(field, value);
      return problem === undefined ? [] : [[field.name, problem] as const];
    }),
  );
  if (wrong.size > 0) {
    const [first = ""] = wrong.values();
    const problem = wrong.size === 1 ? first : `Nothing was sent: ${wrong.size} answers do not fit.`;
    return { ok: false, problem, fields: wrong };
  }
  const given = values.flatMap(([{ name }, value]) => (value === "" ? [] : [[name, value] as const]));
  return { ok: true, answer: { type: "fields", values: Object.fromEntries(given) } };
}

/** The options stand in the form by their number. */
function readValue(field: Field, name: string, form: URLSearchParams): string | string[] {
  if (field.type !== "choice")
    return (field.type === "text" && field.format === undefined ? typedIn : textOf)(form, name);
  const other = textOf(form, otherName(name));
  const boxes = form.getAll(name).filter((value) => value !== "");
  const chosen = boxes.length === 0 && other !== "" ? [OTHER] : boxes;
  const said = chosen.map((value) => (value === OTHER ? other : (field.options[Number(value)] ?? "")));
  if (field.many) return said.filter((text) => text !== "");
  return said[0] ?? "";
}

function editedArguments(
  approval: Approval,
  form: URLSearchParams,
): Record<string, unknown> | "none" | "broken" {
  const json = form.get("edited_args");
  if (json === null) return "none";
  const others = parsedJson(json);
  if (!isRecord(others)) return "broken";
  const { text } = editableArguments(approval);
  const typed = form.get("edited_text");
  return text === undefined || typed === null ? others : { ...others, [text.name]: unmarked(typed) };
}

/** Explains why a text is not valid JSON; `what` describes it without the reason. */
function jsonProblem(text: string, what: string): Problem {
  const error = firstError(text);
  if (error === undefined) return { problem: `${what}.` };
  const before = text.slice(0, error.offset).split("\n");
  const [line, column] = [before.length, (before.at(-1) ?? "").length + 1];
  const reasons: Readonly<Record<string, string>> = jsonErrors; // by the names of the parser
  const why = reasons[printParseErrorCode(error.error)] ?? "something does not belong there";
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
