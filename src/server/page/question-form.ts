/** Reads the form of a question. */
import { defined } from "../../core/defined.ts";
import { parsedJson } from "../../core/unknown.ts";
import type { OpenQuestion } from "../../runs/run.ts";
import { fieldProblem, fieldsOf } from "../../tools/check-answer.ts";
import type { Answer, Field } from "../../tools/tool.ts";
import { OTHER, otherName } from "../views/room/question-fields.ts";
import { jsonProblem } from "./decision.ts";
import { textOf, typedIn } from "./responses.ts";

/** The answer that a person sent, or the reason why it is none. `fields`: the problem of each field by its name. */
export type PageAnswer =
  | { ok: true; answer: Answer }
  | { ok: false; problem: string; fields?: ReadonlyMap<string, string> };

/** Only a pressed button answers. */
export function pageAnswer({ question }: OpenQuestion, form: URLSearchParams): PageAnswer {
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
  const values = fields.map((field, index) => [field, valueOf(field, `v${index}`, form)] as const);
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
function valueOf(field: Field, name: string, form: URLSearchParams): string | string[] {
  if (field.type !== "choice")
    return (field.type === "text" && field.format === undefined ? typedIn : textOf)(form, name);
  const other = textOf(form, otherName(name));
  const boxes = form.getAll(name).filter((value) => value !== "");
  const chosen = boxes.length === 0 && other !== "" ? [OTHER] : boxes;
  const said = chosen.map((value) => (value === OTHER ? other : (field.options[Number(value)] ?? "")));
  if (field.many) return said.filter((text) => text !== "");
  return said[0] ?? "";
}
