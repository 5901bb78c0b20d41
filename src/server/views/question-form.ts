/** Shows a question to a person, as text and as the fields of a form, and reads what they answered. */
import type { ElicitRequestFormParams } from "@modelcontextprotocol/server";
import { z } from "zod";
import { shortTime } from "../../core/clock.ts";
import { defined } from "../../core/defined.ts";
import { cutMiddle, displayBlock, displayName, oneLine } from "../../core/text.ts";
import { parsedJson } from "../../core/unknown.ts";
import type { OpenQuestion } from "../../runs/run.ts";
import { fieldsOf, questionText } from "../../tools/check-answer.ts";
import type { Answer, Field, Question } from "../../tools/tool.ts";
import { type FormPlace, whoAsks } from "./approval-form.ts";
import { asText, indented } from "./quoting.ts";

/** `shown`: dialogs of clients do not scroll far. */
const MAX = { shown: 6000, title: 200, description: 500, problem: 300 };

/** The form that a client shows, or the address that it opens. */
export type PersonRequest = ElicitRequestFormParams | { mode: "url"; message: string; url: string };

/** Kinds of questions that a client can show. */
export interface Abilities {
  /** It opens addresses. */
  urls: boolean;
  /** Options in its forms have titles, and several can be chosen. */
  lists: boolean;
}

/** The answer of a form, or the problem with it that makes the server ask again. */
export type ReadAnswer = { ok: true; answer: Answer } | { ok: false; problem: string };

/** One question as a form: a client that accepts it unread answers nothing, because no field has a default. */
export function questionForm(asked: OpenQuestion, place: FormPlace, can: Abilities): PersonRequest {
  const message = formMessage(asked, place, can);
  const address = addressOf(asked.question);
  if (address !== undefined && can.urls) return { mode: "url", message, url: address.href };
  const fields = formFields(asked.question);
  const properties = Object.fromEntries(fields.flatMap((field) => propertiesOf(field, fields, can)));
  const required = fields.flatMap(({ name, required: isRequired }) =>
    isRequired && Object.hasOwn(properties, name) ? [name] : [],
  );
  return { mode: "form", message, requestedSchema: { type: "object", required, properties } };
}

/** The line above the text: it names the agent that asks, or another MCP server as what it is. */
export const askedBy = ({ agent, question }: Pick<OpenQuestion, "agent" | "question">): string => {
  const who = whoAsks(agent, (text) => asText(text));
  if (question.kind === "ask") return `${who} asks:`;
  if (question.kind === "interrupt") return `${who} uses a tool that asks:`;
  if (question.kind === "review") return "Review of the proposed change:";
  return `Asked by the MCP server "${asText(question.server, MAX.title)}", which gets the answer:`;
};

/** The whole text of a question with nothing hidden in it. */
export const shownText = (question: Question): string => displayBlock(questionText(question));

/** Says when the agent continues without an answer; empty if it waits indefinitely. */
export const expiryText = ({ expiresAt }: Pick<OpenQuestion, "expiresAt">): string[] =>
  expiresAt === undefined ? [] : [`${continuesAfter(shortTime(expiresAt))}.`];

export const continuesAfter = (time: string): string =>
  `If there is no answer by ${time}, the agent continues without one`;

const isAddress = (question: Question): boolean => question.kind === "elicitation" && question.mode === "url";

/** The web address that a person is asked to open; `undefined` for any other address or question. */
export const addressOf = (question: Question): URL | undefined =>
  question.kind === "elicitation" && question.mode === "url" ? webAddress(question.url) : undefined;

/** `undefined`: a browser is not to open it. */
export function webAddress(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url : undefined;
}

/** An address in full, the host first. */
export const addressLines = (url: URL): string[] => [`Host: ${url.host}`, `Address: ${url.href}`];

/** True if a form of ours has room for all of the text. */
export const isWholeInQuestionForm = ({ question }: Pick<OpenQuestion, "question">): boolean =>
  shownText(question).length <= MAX.shown && (question.kind !== "review" || question.diff !== undefined);

const OPENED = "opened";
const ANSWER = "answer";

/**
 * The fields of a form for a question. A choice that takes other answers has a text field behind it, an address is
 * opened elsewhere, and a question without fields takes one text.
 */
export function formFields(question: Question): readonly Field[] {
  if (isAddress(question)) {
    const field = { name: ANSWER, title: "The address is open", type: "choice" as const, options: [OPENED] };
    return addressOf(question) === undefined ? [] : [{ ...field, required: true }];
  }
  const fields = shownFields(question);
  if (fields === undefined) {
    const description = isJsonWanted(question) ? "JSON" : "A text, or a JSON object or list";
    return [{ name: ANSWER, title: "Answer", description, type: "text", required: true }];
  }
  return fields.flatMap((field): Field[] => {
    if (field.type !== "choice" || !field.other) return [field];
    const { other: _other, required, ...choice } = field;
    const title = `${field.title ?? field.name}: other`;
    const description = field.many ? "Counts besides the options" : "Counts instead of the options";
    const text: Field = { name: otherName(field, fields), title, description, type: "text" };
    const own = field.description === undefined ? "" : `${field.description} `;
    const all = `${own}Choose, or write another answer below.`;
    return [{ ...choice, ...(required ? { description: all } : {}) }, text];
  });
}

/** A form that does not show all lines of a change does not offer to apply it. */
function shownFields(question: Question): readonly Field[] | undefined {
  const fields = fieldsOf(question);
  if (question.kind !== "review" || isWholeInQuestionForm({ question })) return fields;
  return fields?.flatMap((field): Field[] => {
    if (field.name === "message") return [field];
    if (field.type !== "choice" || field.name !== "decision") return [];
    return [{ ...field, options: field.options.slice(-1), labels: field.labels?.slice(-1) ?? [] }];
  });
}

/** Reads the content of an answered form, made from the fields of `formFields`. */
export function answerIn(question: Question, content: unknown): ReadAnswer {
  const parsed = Content.safeParse(content ?? {});
  if (!parsed.success) return { ok: false, problem: "The answer was malformed: fill in the form." };
  // Another server may name a field as it likes, such as `toString`.
  const given: Content = Object.assign(Object.create(null), parsed.data);
  if (isAddress(question)) {
    if (given[ANSWER] === OPENED && addressOf(question)) return { ok: true, answer: { type: "opened" } };
    return { ok: false, problem: "Open the address, then say so; or decline." };
  }
  const fields = shownFields(question);
  if (fields === undefined) return freeAnswer(question, given[ANSWER]);
  const values = fields.flatMap((field) => {
    const value = field.type === "choice" ? chosenIn(given, field, fields) : given[field.name];
    return value === undefined || value === null ? [] : [[field.name, value] as const];
  });
  const decision = fields[0];
  const isOffered =
    decision?.type !== "choice" ||
    decision.options.includes(String(given[decision.name] ?? decision.options[0]));
  if (question.kind === "review" && !isOffered)
    return { ok: false, problem: "This form does not show the whole change, so it cannot be applied here." };
  return { ok: true, answer: { type: "fields", values: Object.fromEntries(values) } };
}

/** True if the content of a form says nothing at all. */
export const saysNothing = (content: unknown): boolean =>
  Object.values(Content.safeParse(content).data ?? {}).every(
    (value) => value === null || value === "" || (Array.isArray(value) && value.length === 0),
  );

const Content = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]),
);
type Content = z.output<typeof Content>;

/** The answer in a text for a question without fields: JSON if it looks like an object or a list. */
export function freeAnswer(question: Question, given: unknown): ReadAnswer {
  if (typeof given !== "string" || given.trim() === "")
    return { ok: false, problem: "The answer is missing." };
  const isJson = isJsonWanted(question);
  const json = isJson || /^\s*[[{]/.test(given) ? parsedJson(given) : undefined;
  if (isJson && json === undefined) return { ok: false, problem: "The answer is not valid JSON." };
  return { ok: true, answer: { type: "value", value: json === undefined ? given : json } };
}

/** True if whoever asks states a form of the answer, and it is not a text. */
export const isJsonWanted = (question: Question): boolean =>
  question.kind === "interrupt" && question.schema !== undefined && question.schema["type"] !== "string";

type Choice = Extract<Field, { type: "choice" }>;

/** The options that were chosen, with the other answer. */
function chosenIn(given: Content, field: Choice, fields: readonly Field[]): Content[string] | undefined {
  const { name, options, many } = field;
  const other = field.other ? given[otherName(field, fields)] : undefined;
  const hasOther = typeof other === "string" && other.trim() !== "";
  if (!many) return hasOther ? other : given[name];
  const ticked = options.filter((_option, index) => given[optionName(field, index, fields)] === true);
  const chosen = given[name] ?? ticked;
  return hasOther ? [...[chosen].flat().map(String), other] : chosen;
}

const otherName = ({ name }: Field, fields: readonly Field[]): string => freeName(`${name}_other`, fields);

const optionName = ({ name }: Field, index: number, fields: readonly Field[]): string =>
  freeName(`${name}_${index + 1}`, fields);

const freeName = (name: string, fields: readonly Field[]): string =>
  fields.some((field) => field.name === name) ? freeName(`${name}_`, fields) : name;

type Property = ElicitRequestFormParams["requestedSchema"]["properties"][string];

/** A choice of several is one property for each option where forms have no lists. */
function propertiesOf(field: Field, fields: readonly Field[], { lists }: Abilities): [string, Property][] {
  if (field.type !== "choice") return [[field.name, { ...labelsOf(field), ...plainProperty(field) }]];
  if (!field.many || lists) return [[field.name, { ...labelsOf(field), ...choiceProperty(field, lists) }]];
  return field.options.map((option, index) => [
    optionName(field, index, fields),
    { type: "boolean", title: `${labelsOf(field).title}: ${labelOf(field, option)}` },
  ]);
}

const labelsOf = ({ title, name, description }: Field) => ({
  title: oneLine(displayName(title ?? name), MAX.title),
  ...defined({ description: description && oneLine(displayName(description), MAX.description) }),
});

const labelOf = ({ options, labels }: Choice, option: string): string =>
  oneLine(displayName(labels?.[options.indexOf(option)] ?? option), MAX.title);

function plainProperty(field: Exclude<Field, Choice>): Property {
  if (field.type === "yes_no") return { type: "boolean" };
  if (field.type === "number") {
    const { integer, min: minimum, max: maximum } = field;
    return { type: integer ? "integer" : "number", ...defined({ minimum, maximum }) };
  }
  const { maxLength, format } = field;
  return { type: "string", ...defined({ maxLength, format }) };
}

function choiceProperty(field: Choice, lists: boolean): Property {
  const options = [...new Set(field.options)];
  const titled = options.map((option) => ({ const: option, title: labelOf(field, option) }));
  const isPlain = titled.every((option) => option.title === option.const);
  if (field.many) {
    const least = field.required ? { minItems: 1 } : {};
    if (isPlain) return { type: "array", items: { type: "string", enum: options }, ...least };
    return { type: "array", items: { anyOf: titled }, ...least };
  }
  if (isPlain) return { type: "string", enum: options };
  if (lists) return { type: "string", oneOf: titled };
  return { type: "string", enum: options, enumNames: titled.map(({ title }) => title) };
}

function formMessage(asked: OpenQuestion, place: FormPlace, can: Abilities): string {
  const { question } = asked;
  const isWhole = isWholeInQuestionForm(asked);
  const schema =
    question.kind === "interrupt" && fieldsOf(question) === undefined ? question.schema : undefined;
  const json = schema && cutMiddle(displayBlock(JSON.stringify(schema, null, 2)), MAX.shown);
  return [
    ...(place.problem === undefined ? [] : [asText(place.problem, MAX.problem), ""]),
    askedBy(asked),
    "",
    indented(cutMiddle(shownText(question), MAX.shown)),
    "",
    ...(isWhole ? [] : [notWhole(place.elsewhere)]),
    ...(json === undefined ? [] : ["The answer has to fit this JSON Schema:", "", indented(json), ""]),
    ...addressText(question, can),
    `run ${place.runId} · question ${place.position} of ${place.total}`,
    ...expiryText(asked),
  ].join("\n");
}

const notWhole = (elsewhere = "answer on the page of the server or in its terminal"): string =>
  `This form is too small to show the whole question. To see all of it, ${elsewhere}; the run waits.`;

function addressText(question: Question, { urls }: Abilities): string[] {
  if (!isAddress(question)) return [];
  const url = addressOf(question);
  if (url === undefined) return ["The address is not a web address, so it cannot be opened: decline.", ""];
  const how = urls
    ? "The address to open:"
    : "Open this address in a browser if you trust it, then say so here:";
  return [how, "", indented(addressLines(url).join("\n")), ""];
}
