/** Shows a request to a person, as text and as the fields of a form, and reads the answer. */
import type { ElicitRequestFormParams } from "@modelcontextprotocol/server";
import { z } from "zod";
import { cutMiddle, displayBlock, displayName, oneLine } from "../../core/text.ts";
import { parsedJson, defined, parsedUrl } from "../../core/unknown.ts";
import type { Approval, OpenQuestion, RunRequest } from "../../runs/run.ts";
import {
  callFields,
  isAsItStands,
  offeredDecisions,
  offeredRules,
  ruleName,
} from "../../tools/call-request.ts";
import { checkAnswer, fieldsOf, requestText } from "../../tools/check-answer.ts";
import type { CheckedAnswer, Field, PersonAnswer, Question, RequestContent } from "../../tools/request.ts";
import { asText, indented } from "./quoting.ts";
import { askedBy, deadlineText, heldBackText, whoAsks } from "./request-words.ts";
import { shownCall } from "./shown-call.ts";
import words from "./words.json" with { type: "json" };

/** `shown`: dialogs of clients do not scroll far. `same`: longer than any path with the words around it. */
const MAX = { shown: 6000, title: 200, description: 500, problem: 300, same: 5000 };

export interface FormPlace {
  runId: string;
  /** Counts from 1. */
  position: number;
  /** Number of requests of this kind that are asked for now. */
  total: number;
  /** Why the last answer to this request could not be taken. */
  problem?: string;
  /** Place to answer a request that is too long for the form, such as `open http://…`. */
  elsewhere?: string;
}

/** The form that a client shows, or the address that it opens. */
export type PersonRequest = ElicitRequestFormParams | { mode: "url"; message: string; url: string };

/** Kinds of questions that a client can show. */
export interface Abilities {
  /** It opens addresses. */
  urls: boolean;
  /** Options in its forms have titles, and several can be chosen. */
  lists: boolean;
}

/**
 * One request as a form. A client that accepts it unread answers nothing, because no field has a default that decides.
 * A form that does not show the whole request neither approves a call nor applies a change.
 */
export function requestForm(request: RunRequest, place: FormPlace, can: Abilities): PersonRequest {
  const message =
    request.kind === "approval" ? callMessage(request, place) : questionMessage(request, place, can);
  const address = addressOf(request);
  if (address !== undefined && can.urls) return { mode: "url", message, url: address.href };
  const fields = formFields(request);
  const properties = Object.fromEntries(fields.flatMap((field) => formProperties(field, fields, can)));
  const required = fields.flatMap(({ name, required: isRequired }) =>
    isRequired && Object.hasOwn(properties, name) ? [name] : [],
  );
  return { mode: "form", message, requestedSchema: { type: "object", required, properties } };
}

/** The whole text of a request with nothing hidden in it. */
export const shownText = (request: RequestContent): string => displayBlock(requestText(request));

const isAddress = (request: RequestContent): boolean =>
  request.kind === "elicitation" && request.mode === "url";

/** The web address that a person is asked to open; `undefined` for any other address or question. */
export const addressOf = (request: RequestContent): URL | undefined =>
  request.kind === "elicitation" && request.mode === "url" ? webAddress(request.url) : undefined;

/** Returns undefined if browsers must not open the address. */
export function webAddress(text: string): URL | undefined {
  const url = parsedUrl(text);
  return url !== undefined && /^https?:$/.test(url.protocol) ? url : undefined;
}

/** The web address that a person is asked to open, in full, the host first; empty if there is none. */
export function addressLines(request: RequestContent): string[] {
  const url = addressOf(request);
  return url === undefined ? [] : [`Host: ${url.host}`, `Address: ${url.href}`];
}

export function isWholeInForm(request: RequestContent): boolean {
  if (request.kind === "approval") return shownCall(request, MAX.shown).isWhole;
  return shownText(request).length <= MAX.shown && (request.kind !== "review" || request.diff !== undefined);
}

const OPENED = "opened";
const ANSWER = "answer";

/**
 * The fields of a form for a request. A choice that takes other answers has a text field behind it, an address is
 * opened elsewhere, and a request without fields takes one text.
 */
export function formFields(request: RequestContent): readonly Field[] {
  if (isAddress(request)) {
    const field = { name: ANSWER, title: "The address is open", type: "choice" as const, options: [OPENED] };
    return addressOf(request) === undefined ? [] : [{ ...field, required: true }];
  }
  const fields = shownFields(request);
  if (fields === undefined) {
    const description = isJsonWanted(request) ? "JSON" : "A text, or a JSON object or list";
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

/** Returns the fields without those that the form offers only with the whole request. */
function shownFields(request: RequestContent): readonly Field[] | undefined {
  if (request.kind === "approval")
    return callFields(request, offeredDecisions(request, shownCall(request, MAX.shown)));
  const fields = fieldsOf(request);
  if (request.kind !== "review" || isWholeInForm(request)) return fields;
  return fields?.flatMap((field): Field[] => {
    if (field.name === "message") return [field];
    if (field.type !== "choice" || field.name !== "decision") return [];
    return [{ ...field, options: field.options.slice(-1), labels: field.labels?.slice(-1) ?? [] }];
  });
}

/** Reads the content of an answered form, made from the fields of `formFields`. */
export function readForm(request: RequestContent, content: unknown): CheckedAnswer {
  const parsed = Content.safeParse(content ?? {});
  if (!parsed.success) return wrong("The answer was malformed: fill in the form.");
  // Another server may name a field as it likes, such as `toString`.
  const given: Content = Object.assign(Object.create(null), parsed.data);
  if (isAddress(request)) {
    if (given[ANSWER] === OPENED && addressOf(request)) return { ok: true, answer: { type: "opened" } };
    return wrong("Open the address, then say so; or decline.");
  }
  const fields = shownFields(request);
  if (fields === undefined) return freeAnswer(request, given[ANSWER]);
  const values = fields.flatMap((field) => {
    const value = field.type === "choice" ? readChosen(given, field, fields) : given[field.name];
    return value === undefined || value === null ? [] : [[field.name, value] as const];
  });
  const checked = checkAnswer(request, { type: "fields", values: Object.fromEntries(values) });
  if (!checked.ok) return checked;
  if (carriesOut(request, checked) && !isWholeInForm(request))
    return wrong(
      request.kind === "approval"
        ? "This form did not show the whole call, so it cannot approve it: decide where all of it is shown."
        : "This form does not show the whole change, so it cannot be applied here.",
    );
  const [decision] = fields;
  const isOffered =
    request.kind !== "approval" ||
    (decision?.type === "choice" && decision.options.includes(checked.answer.type));
  return isOffered ? checked : wrong(`"${checked.answer.type}" is not possible in this form.`);
}

/** True if an answer makes a call as it stands, or applies part of a change. */
const carriesOut = (request: RequestContent, { answer }: { answer: PersonAnswer }): boolean =>
  request.kind === "approval"
    ? isAsItStands(answer, request)
    : answer.type === "review" && Object.keys(answer.choice.apply).length > 0;

const wrong = (message: string): CheckedAnswer => ({ ok: false, message });

/** True if a form's content is empty. */
export const saysNothing = (content: unknown): boolean =>
  Object.values(Content.safeParse(content).data ?? {}).every(
    (value) => value === null || value === "" || (Array.isArray(value) && value.length === 0),
  );

const Content = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]),
);
type Content = z.output<typeof Content>;

/** Reads a text that answers a request without fields: JSON if it looks like an object or a list. */
export function freeAnswer(request: RequestContent, given: unknown): CheckedAnswer {
  if (typeof given !== "string" || given.trim() === "") return wrong("The answer is missing.");
  const isJson = isJsonWanted(request);
  const json = isJson || /^\s*[[{]/.test(given) ? parsedJson(given) : undefined;
  if (isJson && json === undefined) return wrong("The answer is not valid JSON.");
  return { ok: true, answer: { type: "value", value: json === undefined ? given : json } };
}

/** True if the asker states a form of the answer, and it is not a text. */
export const isJsonWanted = (request: RequestContent): boolean =>
  request.kind === "interrupt" && request.schema !== undefined && request.schema["type"] !== "string";

type Choice = Extract<Field, { type: "choice" }>;

/** The options that were chosen, with the other answer. */
function readChosen(given: Content, field: Choice, fields: readonly Field[]): Content[string] | undefined {
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
function formProperties(field: Field, fields: readonly Field[], { lists }: Abilities): [string, Property][] {
  if (field.type !== "choice") return [[field.name, { ...fieldLabels(field), ...plainProperty(field) }]];
  if (!field.many || lists) return [[field.name, { ...fieldLabels(field), ...choiceProperty(field, lists) }]];
  return field.options.map((option, index) => [
    optionName(field, index, fields),
    { type: "boolean", title: `${fieldLabels(field).title}: ${optionLabel(field, option)}` },
  ]);
}

/** Describes a suggested value: a client could send a default unread. */
function fieldLabels(field: Field) {
  const { title, name, description, suggested = [] } = field;
  const isChoice = field.type === "choice";
  const values = [suggested].flat().map((one) => (isChoice ? optionLabel(field, String(one)) : one));
  const about = [description, values.length > 0 && `suggested: ${values.join(", ")}`];
  const shown = oneLine(displayName(about.filter(Boolean).join("; ")), MAX.description) || undefined;
  return { title: oneLine(displayName(title ?? name), MAX.title), ...defined({ description: shown }) };
}

const optionLabel = ({ options, labels }: Choice, option: string): string =>
  oneLine(displayName(labels?.[options.indexOf(option)] ?? option), MAX.title);

function plainProperty(field: Exclude<Field, Choice>): Property {
  if (field.type === "yes_no") return { type: "boolean" };
  if (field.type === "number") {
    const { integer, min: minimum, max: maximum } = field;
    return { type: integer ? "integer" : "number", ...defined({ minimum, maximum }) };
  }
  const { maxLength, format, initial } = field;
  return { type: "string", ...defined({ maxLength, format, default: initial }) };
}

function choiceProperty(field: Choice, lists: boolean): Property {
  const options = [...new Set(field.options)];
  const titled = options.map((option) => ({ const: option, title: optionLabel(field, option) }));
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

function callMessage(approval: Approval, place: FormPlace): string {
  const call = shownCall(approval, MAX.shown);
  const { elsewhere = "decide on the page of the server or in its terminal" } = place;
  const decisions = callFields(approval, offeredDecisions(approval, call)).flatMap((field) =>
    field.type === "choice" ? field.options : [],
  );
  const same = asText(approval.same?.text ?? "calls like this", MAX.same);
  const sameText = `approve_same: also approves ${same} for the rest of the run.`;
  const offers = offeredRules(approval).flatMap((offer) => [
    ruleName(offer),
    `  ${displayName(oneLine(offer.sentence, MAX.description))}`,
  ]);
  const isTooLongToEdit = approval.allowedDecisions.includes("edit") && !decisions.includes("edit");
  return [
    ...problemText(place),
    `${whoAsks(approval.agent, (text) => asText(text))} wants to run ${asText(approval.tool, 64)} (${words.effects[approval.preview.kind]}):`,
    asText(call.summary),
    "",
    indented([...call.destination.flatMap((line) => [line, ""]), call.detail].join("\n")),
    "",
    ...(call.isWhole
      ? []
      : [
          `This form is too small to show the whole call, so it cannot approve it. To see all of it and decide, ${elsewhere}; the run waits.`,
        ]),
    `run ${place.runId} · approval ${place.position} of ${place.total}`,
    ...(decisions.includes("approve_same") ? [sameText] : []),
    ...(decisions.includes("approve_always")
      ? [
          "approve_always: also save a rule, so that later calls like this run without asking. The rules:",
          "",
          indented(offers.join("\n")),
          "",
        ]
      : []),
    ...heldBackText(approval, (text) => asText(text)),
    ...deadlineText(approval),
    ...(isTooLongToEdit ? ["The arguments are too long to be edited in this form."] : []),
  ].join("\n");
}

const problemText = ({ problem }: FormPlace): string[] =>
  problem === undefined ? [] : [asText(problem, MAX.problem), ""];

function questionMessage(request: OpenQuestion, place: FormPlace, can: Abilities): string {
  const { elsewhere = "answer on the page of the server or in its terminal" } = place;
  const isFree = request.kind === "interrupt" && fieldsOf(request) === undefined;
  const schema = isFree ? request.schema : undefined;
  const json = schema && cutMiddle(displayBlock(JSON.stringify(schema, null, 2)), MAX.shown);
  return [
    ...problemText(place),
    askedBy(request),
    "",
    indented(cutMiddle(shownText(request), MAX.shown)),
    "",
    ...(isWholeInForm(request)
      ? []
      : [
          `This form is too small to show the whole question. To see all of it, ${elsewhere}; the run waits.`,
        ]),
    ...(json === undefined ? [] : ["The answer has to fit this JSON Schema:", "", indented(json), ""]),
    ...addressText(request, can),
    `run ${place.runId} · question ${place.position} of ${place.total}`,
    ...deadlineText(request),
  ].join("\n");
}

function addressText(question: Question, { urls }: Abilities): string[] {
  if (!isAddress(question)) return [];
  const lines = addressLines(question);
  if (lines.length === 0) return ["The address is not a web address, so it cannot be opened: decline.", ""];
  const how = urls
    ? "The address to open:"
    : "Open this address in a browser if you trust it, then say so here:";
  return [how, "", indented(lines.join("\n")), ""];
}
