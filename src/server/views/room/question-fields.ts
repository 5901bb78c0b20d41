/** The fields of a question's form. Their names in the form are ours: those of the question are texts of others. */
import { displayText } from "../../../core/text.ts";
import type { Field } from "../../../tools/request.ts";
import { type Html, html, textArea } from "../html.ts";
import { type ChoiceLook, choiceInput } from "./pieces.ts";

export interface FieldLook {
  name: string;
  id: string;
  label: string;
  /** A form that was refused. */
  typed: URLSearchParams | undefined;
  /** Why its value was refused. */
  problem: string | undefined;
}

/** The value of the choice that is none of the options; its text is a field beside it. */
export const OTHER = "other";
export const otherName = (name: string): string => `${name}-other`;

export function fieldInput(field: Field, look: FieldLook): Html {
  if (field.type === "choice") return choices(field, look);
  if (field.type === "yes_no")
    return choiceSet(field, look, [option(look, "yes", "Yes"), option(look, "no", "No")]);
  const { name, id, typed, problem } = look;
  const value = typed?.get(name) ?? "";
  const attributes = html`id="${id}" name="${name}" class="field${problem === undefined ? "" : " bad"}"
  ${field.required && html` required`} ${problem !== undefined && html`aria-invalid="true"`}
  ${describedBy(field, look)}`;
  return html`<div>
    <label class="label" for="${id}">${look.label}${optional(field)}</label>
    ${
      field.type === "text" && field.format === undefined
        ? textArea(
            html`${attributes} rows="2"
            ${field.maxLength !== undefined && field.maxLength > 0 && html`maxlength="${field.maxLength}"`}`,
            value,
          )
        : html`<input ${attributes} ${renderKind(field)} value="${value}" />`
    }
    ${notes(field, look)}
  </div>`;
}

/** A browser keeps a wrong number that was typed only in a field of text. */
function renderKind(field: Extract<Field, { type: "text" | "number" }>): Html {
  if (field.type === "number") return html`inputmode="${field.integer ? "numeric" : "decimal"}"`;
  if (field.format === "date") return html`type="date"`;
  const hint = field.format === "date-time" ? html`placeholder="2026-03-29T14:30:00Z"` : undefined;
  return html`inputmode="${field.format === "email" ? "email" : field.format === "uri" ? "url" : "text"}"
  ${hint}`;
}

const optional = ({ required }: Field): Html | false =>
  !required && html` <span class="need">(optional)</span>`;

const hasNotes = ({ description = "" }: Field, { problem }: FieldLook): boolean =>
  description !== "" || problem !== undefined;

const describedBy = (field: Field, look: FieldLook): Html | false =>
  hasNotes(field, look) &&
  html`aria-describedby="${look.id}-n" ${look.problem !== undefined && html`data-wrong`}`;

/** Describes the field, and explains why its value was refused. */
const notes = (field: Field, look: FieldLook): Html | false =>
  hasNotes(field, look) &&
  html`<div class="note hint" id="${look.id}-n">
    ${field.description && html`<p class="lines">${displayText(field.description)}</p>`}
    ${look.problem !== undefined && html`<p class="minus anywhere">${displayText(look.problem)}</p>`}
  </div>`;

function option({ name, typed }: FieldLook, value: string, label: string, more: ChoiceLook = {}): Html {
  const isChosen = typed?.getAll(name).includes(value) ?? false;
  return choiceInput(name, value, label, isChosen, { ...more, look: "anywhere" });
}

function choices(field: Extract<Field, { type: "choice" }>, look: FieldLook): Html {
  const type = field.many ? "checkbox" : "radio";
  const options = field.options.map((text, index) =>
    option(look, String(index), field.labels?.[index] ?? text, { type }),
  );
  if (!field.other) return choiceSet(field, look, options);
  const own = otherName(look.name);
  const more = html`<input
    class="field"
    name="${own}"
    aria-label="Other"
    data-other
    value="${look.typed?.get(own) ?? ""}"
  />`;
  return choiceSet(field, look, [...options, option(look, OTHER, "Other", { type, more })]);
}

/** One choice that is optional can be taken back. */
function choiceSet(field: Field, look: FieldLook, options: readonly Html[]): Html {
  const isOne = field.type === "yes_no" || (field.type === "choice" && !field.many);
  const isEmpty = (look.typed?.get(look.name) ?? "") === "";
  const none = isOne && !field.required && choiceInput(look.name, "", "No answer", isEmpty, { look: "dim" });
  return html`<fieldset
    class="choices${field.type === "yes_no" ? " inline" : ""}"
    ${describedBy(field, look)}
  >
    <legend class="label">${look.label}${optional(field)}</legend>
    ${options}${none} ${notes(field, look)}
  </fieldset>`;
}
