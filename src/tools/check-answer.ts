/** Checks an answer to a question, wherever it comes from, and reads it into the form that the question asks for. */
import { shapeProblem } from "../core/json.ts";
import { cutMiddle } from "../core/text.ts";
import { isRecord, recordOf, textMemberOf, defined, parsedUrl } from "../core/unknown.ts";
import { callFields, checkDecision, readDecision } from "./call-request.ts";
import { checkReview, choiceText, readReview, reviewFields, reviewText } from "./review.ts";
import type {
  Answer,
  CheckedAnswer,
  Field,
  PersonAnswer,
  Question,
  RequestContent,
  Value,
} from "./request.ts";

const MOST_CHARS = 64 * 1024;

/** The fields of a request. Returns undefined if it takes a free text, or JSON. */
export function fieldsOf(request: RequestContent): readonly Field[] | undefined {
  switch (request.kind) {
    case "approval":
      return callFields(request);
    case "ask":
      return request.fields;
    case "elicitation":
      return request.mode === "form" ? request.fields : [];
    case "review":
      return reviewFields(request);
    case "interrupt":
      return request.schema && flatFields(request.schema);
    default:
      return request satisfies never;
  }
}

/** The text of a request, which a person reads first. */
export function requestText(request: RequestContent): string {
  if (request.kind === "approval") return request.preview.summary;
  if (request.kind === "ask") return request.text;
  if (request.kind === "elicitation") return request.message;
  if (request.kind === "review") return reviewText(request);
  const { value } = request;
  if (typeof value === "string") return value;
  const said = isRecord(value) ? [value["question"], value["message"], value["text"], value["prompt"]] : [];
  const text = said.find((part) => typeof part === "string");
  return typeof text === "string"
    ? text
    : cutMiddle(JSON.stringify(value, null, 2) ?? "The agent asks.", 20_000);
}

/** The words of an answer, for people. Returns undefined if it has none. */
export function answerText(answer: PersonAnswer): string | undefined {
  switch (answer.type) {
    case "fields":
      return Object.entries(answer.values)
        .map(([name, value], _at, all) => (all.length === 1 ? String(value) : `${name}: ${String(value)}`))
        .join("; ");
    case "value":
      return typeof answer.value === "string" ? answer.value : JSON.stringify(answer.value);
    case "opened":
      return "opened the address";
    case "review":
      return choiceText(answer.choice);
    case "decline":
    case "reject":
      return answer.message;
    default:
      return undefined;
  }
}

/** Reads an answer to a request. Returns the problem if there is one. */
export function checkAnswer(request: Question, given: PersonAnswer): CheckedAnswer<Answer>;
export function checkAnswer(request: RequestContent, given: PersonAnswer): CheckedAnswer;
export function checkAnswer(request: RequestContent, given: PersonAnswer): CheckedAnswer {
  if (request.kind === "approval") {
    if (given.type === "decline") return checkDecision(request, { ...given, type: "reject" });
    return given.type === "fields" ? readDecision(request, given.values) : checkDecision(request, given);
  }
  if (given.type === "decline" || given.type === "expired") return { ok: true, answer: given };
  if (request.kind === "elicitation" && request.mode === "url")
    return given.type === "opened" ? { ok: true, answer: given } : problem("Open the address, or decline.");
  if (given.type === "review" && request.kind === "review") return checkReview(request, given.choice);
  const fields = fieldsOf(request);
  if (given.type === "fields" && fields !== undefined) {
    // Values of other fields than those asked for are left out.
    const read: [string, Value][] = [];
    for (const field of fields) {
      const value: unknown = Object.hasOwn(given.values, field.name) ? given.values[field.name] : undefined;
      const wrong = fieldProblem(field, value);
      if (wrong !== undefined) return problem(wrong);
      const own = isMissing(value) ? undefined : readValue(field, value);
      if (own !== undefined) read.push([field.name, own]);
    }
    const values = Object.fromEntries(read);
    return request.kind === "review"
      ? readReview(request, values)
      : { ok: true, answer: { type: "fields", values } };
  }
  if (given.type === "value" && request.kind === "interrupt") {
    const isFitting = shapeProblem(given.value, { depth: 20, values: 10_000 }) === undefined;
    if (isFitting && (JSON.stringify(given.value) ?? "").length <= MOST_CHARS)
      return { ok: true, answer: given };
    return problem("The answer is too large: at most 64 KB and 20 levels of JSON.");
  }
  return problem(fields === undefined ? "Answer with a text or JSON." : "Answer the fields of the question.");
}

/** The reason why a field does not accept a value. Returns undefined if it does. */
export function fieldProblem(field: Field, value: unknown): string | undefined {
  if (isMissing(value)) return field.required ? `${nameOf(field)} is missing.` : undefined;
  return readValue(field, value) === undefined ? `${nameOf(field)} must be ${wanted(field)}.` : undefined;
}

const isMissing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (typeof value === "string" && value.trim() === "") ||
  (Array.isArray(value) && value.length === 0);

const nameOf = ({ title, name }: Field): string => `'${title ?? name}'`;

/** The value in the form of its field; values from pages and terminals are texts. */
function readValue(field: Field, value: unknown): Value | undefined {
  switch (field.type) {
    case "text": {
      const { maxLength = MOST_CHARS, format } = field;
      if (typeof value !== "string" || value.length > maxLength) return undefined;
      return format === undefined || FORMATS[format].fits(value.trim()) ? value : undefined;
    }
    case "number": {
      const { min = -Infinity, max = Infinity } = field;
      const read = typeof value === "string" ? Number(value.trim().replace(",", ".")) : value;
      if (typeof read !== "number" || !Number.isFinite(read)) return undefined;
      return read >= min && read <= max && (!field.integer || Number.isInteger(read)) ? read : undefined;
    }
    case "yes_no":
      return YES_NO.get(typeof value === "string" ? value.trim().toLowerCase() : value);
    case "choice": {
      const given = [value].flat();
      if (!given.every((one) => typeof one === "string")) return undefined;
      const { options, labels = [] } = field;
      const chosen = given.map((one) =>
        options.includes(one) ? one : (options[labels.indexOf(one)] ?? one),
      );
      const isKnown = chosen.every((one) => options.includes(one) || field.other === true);
      if (!isKnown || chosen.some((one) => one.length > MOST_CHARS)) return undefined;
      return field.many ? chosen : chosen.length === 1 ? chosen[0] : undefined;
    }
  }
}

const YES_NO: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ...[true, "true", "yes", "y", "on"].map((word) => [word, true] as const),
  ...[false, "false", "no", "n", "off"].map((word) => [word, false] as const),
]);

/** Describes the values of a field, such as `a whole number of at least 1`. */
export function wanted(field: Field): string {
  switch (field.type) {
    case "text": {
      const kind = field.format === undefined ? "a text" : FORMATS[field.format].wants;
      return field.maxLength === undefined ? kind : `${kind} of at most ${field.maxLength} characters`;
    }
    case "number": {
      const { min, max } = field;
      const most = max === undefined ? "" : ` of at most ${max}`;
      const both = max === undefined ? ` of at least ${min}` : ` from ${min} to ${max}`;
      return `a ${field.integer ? "whole number" : "number"}${min === undefined ? most : both}`;
    }
    case "yes_no":
      return "yes or no";
    case "choice":
      return `${field.many ? "one or more" : "one"} of: ${(field.labels ?? field.options).join(", ")}`;
  }
}

const problem = (message: string) => ({ ok: false as const, message });

/**
 * The fields of a flat JSON Schema, of the form that MCP's elicitation has; `undefined` for any other schema. A schema
 * that a sloppy program writes without `type: object` counts by its properties.
 */
export function flatFields(schema: Readonly<Record<string, unknown>>): Field[] | undefined {
  const { properties, required } = schema;
  if (!isRecord(properties)) return undefined;
  const needed = new Set(Array.isArray(required) ? required : []);
  const fields = Object.entries(properties)
    .slice(0, 50)
    .map(([name, property]): Field | undefined => {
      if (!isRecord(property)) return undefined;
      const [title, said = ""] = ["title", "description"].map((key) => textMemberOf(property, key));
      const required = needed.has(name) ? (true as const) : undefined;
      const { default: given, examples = [] } = property;
      const shown = [examples].flat().map(String).join(", ");
      const description = [said, shown && `examples: ${shown}`].filter(Boolean).join("; ") || undefined;
      const kind = flatField(property);
      const field = kind && { name, ...defined({ title, description, required }), ...kind };
      const suggested = field && !isMissing(given) ? readValue(field, given) : undefined;
      return field && { ...field, ...defined({ suggested }) };
    });
  return fields.every((field) => field !== undefined) ? fields : undefined;
}

const numberIn = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

type Kind<Of = Field> = Of extends Field
  ? Omit<Of, "name" | "title" | "description" | "required" | "suggested">
  : never;

function flatField(property: Record<string, unknown>): Kind | undefined {
  const { type, items, minimum, maximum, maxLength, format } = property;
  const options = optionsOf(property);
  if (options) return { type: "choice", ...options };
  if (type === "array" && isRecord(items)) {
    const several = optionsOf(items);
    return several && { type: "choice", ...several, many: true };
  }
  if (type === "boolean") return { type: "yes_no" };
  if (type === "number" || type === "integer") {
    const integer = type === "integer" ? (true as const) : undefined;
    return { type: "number", ...defined({ integer, min: numberIn(minimum), max: numberIn(maximum) }) };
  }
  if (type !== "string" && type !== undefined) return undefined;
  const known = (Object.keys(FORMATS) as (keyof typeof FORMATS)[]).find((name) => name === format);
  return { type: "text", ...defined({ maxLength: numberIn(maxLength), format: known }) };
}

const isDate = (text: string): boolean => !Number.isNaN(Date.parse(text));

/** Formats of a text: their description for a person, and the least check. */
const FORMATS: Readonly<
  Record<
    NonNullable<Extract<Field, { type: "text" }>["format"]>,
    { wants: string; fits: (text: string) => boolean }
  >
> = {
  email: { wants: "an email address", fits: (text) => /^[^\s@]+@[^\s@]+$/.test(text) },
  uri: { wants: "an address such as https://example.org/", fits: (text) => parsedUrl(text) !== undefined },
  date: {
    wants: "a date such as 2026-03-29",
    fits: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDate(text),
  },
  "date-time": {
    wants: "a date and time such as 2026-03-29T14:30:00Z",
    fits: (text) => /^\d{4}-\d\d-\d\dT/.test(text) && isDate(text),
  },
};

/** The options of an enumeration: with titles beside them, in `enumNames`, or as constants with titles. */
function optionsOf(schema: Record<string, unknown>): { options: string[]; labels?: string[] } | undefined {
  const { enum: values, enumNames: names, oneOf, anyOf } = schema;
  if (Array.isArray(values) && values.length > 0) {
    const labels =
      Array.isArray(names) && names.length === values.length ? { labels: names.map(String) } : {};
    return { options: values.map(String), ...labels };
  }
  const cases: unknown = [oneOf, anyOf].find((list) => Array.isArray(list) && list.length > 0);
  if (!Array.isArray(cases) || !cases.every((one) => isRecord(one) && "const" in one)) return undefined;
  const records = cases.map(recordOf);
  return {
    options: records.map((one) => String(one["const"])),
    labels: records.map((one) => String(one["title"] ?? one["const"])),
  };
}
