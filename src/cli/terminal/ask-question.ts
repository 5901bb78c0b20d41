/** Asks a person in the terminal the questions of a run that are not about approval, field by field. */
import { capital, cutMiddle, displayBlock, displayName, displayText, oneLine } from "../../core/text.ts";
import { versionsOf } from "../../runs/proposals.ts";
import type { OpenQuestion } from "../../runs/run.ts";
import {
  answerText,
  checkAnswer,
  fieldProblem,
  fieldsOf,
  requestText,
  wanted,
} from "../../tools/check-answer.ts";
import type { Answer, Field, PersonAnswer, Question } from "../../tools/request.ts";
import { addressLines, freeAnswer, isJsonWanted } from "../../server/views/request-form.ts";
import { deadlineText, whoAsks } from "../../server/views/request-words.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import type { Asker } from "./asker.ts";
import { type BodyStyle, type RequestLines, textBody, wrapped } from "./body.ts";
import { changeLines } from "./proposed.ts";
import { chopText, unbroken, wrapText } from "./text.ts";

export interface AskOptions {
  runs: PrincipalRuns;
  asker: Asker;
  /** The id of the one approval or question to ask about. Default: all. */
  only?: string | undefined;
}

const MAX = { name: 200, value: 20_000 };

/** Prints a question, and returns the function that reads an answer to it. */
export async function openQuestion(
  asked: OpenQuestion,
  place: string,
  { runs, asker }: AskOptions,
  elsewhere: AbortSignal,
): Promise<() => Promise<PersonAnswer>> {
  const { colors } = asker;
  const style = { colors, width: asker.size().columns };
  const { title, body, notes } = questionLines(asked, style);
  const head = ["", colors.yellow(`? Question ${place}`), ...title, "", ...body, ""];
  const whole = asked.kind === "review" ? await runs.changes.proposed(asked.runId) : undefined;
  const change = whole === undefined ? [] : [...changeLines(whole, style), ""];
  const wayOut = wrapped("Type /decline to skip this question.", style).map(colors.dim);
  asker.print([...head, ...change, ...notes, ...wayOut].join("\n"));
  return async () => {
    // An answer to a review is for the change that was printed.
    const given = await answerTo(asked, asker, elsewhere);
    const checked = whole && checkAnswer(asked, given);
    if (whole === undefined || !checked?.ok || checked.answer.type !== "review") return given;
    return { type: "review", choice: { ...checked.answer.choice, shown: versionsOf(whole.files) } };
  };
}

/** A question as lines: who asks, its words in full, and further facts such as its expiry. */
export function questionLines(asked: OpenQuestion, style: BodyStyle): RequestLines {
  const lines = (text: string): string[] => wrapped(text, style);
  const isForm = asked.kind === "elicitation" && asked.mode === "form";
  const warning =
    "This form comes from the server, which receives what you enter. Don't enter passwords or keys.";
  return {
    title: lines(whoAsksWhat(asked, whoAsks(asked.agent))),
    body: [headText(asked), ...moreText(asked)].flatMap((text) =>
      textBody(wrapText(displayBlock(text), style.width - 5).join("\n"), style),
    ),
    notes: [...(isForm ? [warning] : []), ...deadlineText(asked)]
      .flatMap(lines)
      .map((line) => style.colors.dim(line)),
  };
}

/** The lines of a proposed change are shown by themselves. */
function headText(question: Question): string {
  if (question.kind !== "review") return requestText(question);
  const { diff: _diff, ...head } = question;
  return requestText(head);
}

function whoAsksWhat(question: Question, agent: string): string {
  if (question.kind === "ask") return `${agent} asks:`;
  if (question.kind === "interrupt") return `${agent} uses a tool that asks:`;
  if (question.kind === "review") return "Review of the proposed change:";
  const name = displayName(oneLine(question.server, MAX.name));
  return question.mode === "form"
    ? `MCP server ${name} asks:`
    : `MCP server ${name} asks you to open an address:`;
}

/** Lines that belong to the words: the address with its host first, or all that a tool sent. */
function moreText(question: Question): string[] {
  if (question.kind === "elicitation" && question.mode === "url") {
    const address = addressLines(question);
    return address.length === 0 ? [`Not a web address: ${question.url}`] : address;
  }
  if (question.kind !== "interrupt" || typeof question.value === "string") return [];
  const json = JSON.stringify(question.value, null, 2) ?? "";
  return json === requestText(question) ? [] : [cutMiddle(json, MAX.value)];
}

/** The fields as lines, with the names that `--field` takes. */
export const fieldLines = (question: Question, style: BodyStyle): string[] =>
  (fieldsOf(question) ?? []).flatMap((field) =>
    wrapped(
      `  ${displayName(field.name)}: ${displayText(wanted(field) + suggestion(field, "; suggested: "))}${optional(field)}`,
      style,
    ),
  );

export function answeredLine(question: OpenQuestion): string {
  const { status, decidedBy, answer } = question;
  const by = decidedBy === undefined ? "" : ` (${decidedBy})`;
  const said = (answer && answerText(answer)) ?? "";
  const words = oneLine(displayText(requestText(question)), MAX.name);
  return `  ${status}${by} ${words}${said === "" ? "" : `: ${oneLine(displayText(said), MAX.name)}`}`;
}

const optional = ({ required }: Field): string => (required ? "" : " (optional)");

const suggestion = ({ suggested }: Field, before: string): string => {
  const shown = typeof suggested === "boolean" ? (suggested ? "y" : "n") : [suggested].flat().join(", ");
  return suggested === undefined ? "" : before + oneLine(shown, MAX.name);
};

/** The person typed that they do not answer. */
class Declined {
  readonly answer: Answer;

  constructor(message: string) {
    this.answer = { type: "decline", ...(message === "" ? {} : { message }) };
  }
}

async function answerTo(question: Question, asker: Asker, elsewhere: AbortSignal): Promise<PersonAnswer> {
  if (question.kind === "elicitation" && question.mode === "url")
    return openedOrNot(question, asker, elsewhere);
  const read = async (prompt: string): Promise<string | Declined> => {
    const typed = (await asker.line(prompt, elsewhere)).trim();
    const message = /^\/decline\b\s*(.*)$/s.exec(typed)?.[1];
    return message === undefined ? typed : new Declined(message.trim());
  };
  const fields = fieldsOf(question);
  if (fields === undefined) {
    for (;;) {
      const typed = await read(isJsonWanted(question) ? "Answer as JSON › " : "Answer, as text or JSON › ");
      if (typed instanceof Declined) return typed.answer;
      const found = freeAnswer(question, typed);
      if (found.ok) return found.answer;
      asker.print(asker.colors.yellow(found.message));
    }
  }
  const values: [string, string | string[]][] = [];
  for (const field of fields) {
    // These fields of a review belong to one decision each.
    const decision =
      question.kind === "review" &&
      new Map([
        ["files", "chosen"],
        ["branch", "branch"],
      ]).get(field.name);
    if (decision && decision !== values[0]?.[1]) continue;
    const value = await askField(field, fields.length === 1, asker, read);
    if (value instanceof Declined) return value.answer;
    if (value.length > 0) values.push([field.name, value]);
  }
  return { type: "fields", values: Object.fromEntries(values) };
}

async function openedOrNot(question: Question, asker: Asker, elsewhere: AbortSignal): Promise<Answer> {
  const { bold, cyan } = asker.colors;
  const choice = (key: string, label: string): string => unbroken(`${bold(cyan(key))} ${label}`);
  const opened = addressLines(question).length === 0 ? [] : [choice("o", "done, I opened it")];
  const choices = [...opened, choice("d", "skip this question")];
  for (let isFirst = true; ; isFirst = false) {
    const key = (await asker.key(`${choices.join("  ")} › `, isFirst, elsewhere)).toLowerCase();
    if (key === "d") return { type: "decline" };
    if (key === "o" && opened.length > 0) return { type: "opened" };
  }
}

type Read = (prompt: string) => Promise<string | Declined>;

/** Empty: an optional field that was skipped. `isOnly`: the question has no other field. */
async function askField(field: Field, isOnly: boolean, asker: Asker, read: Read) {
  const { colors } = asker;
  const style = { width: asker.size().columns };
  const isPlain = isOnly && field.type === "text" && field.title === undefined;
  const { suggested, required } = field;
  const taken = displayText(suggestion(field, " (Enter: ")) + ")";
  const skips = suggested !== undefined ? taken : required ? "" : " (optional: Enter skips)";
  const title = displayName(oneLine(field.title ?? field.name, MAX.name)) + skips;
  const about = [
    ...(isPlain ? [] : ["", ...wrapped(title, style).map(colors.bold)]),
    ...(field.description === undefined
      ? []
      : wrapped(displayText(field.description), style).map(colors.dim)),
    ...optionLines(field, style.width),
  ];
  if (about.length > 0) asker.print(about.join("\n"));
  for (;;) {
    const typed = await read(`${promptFor(field)}${isPlain ? skips : ""} › `);
    if (typed instanceof Declined) return typed;
    const isTaken = typed === "" && suggested !== undefined;
    const given = Array.isArray(suggested) ? suggested : String(suggested);
    const value = isTaken ? given : field.type === "choice" ? parseChoice(field, typed) : typed;
    const problem = fieldProblem(field, value);
    if (problem === undefined) {
      const chosen = wrapped(`› ${displayText([value].flat().join(", "))}`, style).map(colors.dim);
      if (field.type === "choice" && value.length > 0) asker.print(chosen.join("\n"));
      return value;
    }
    asker.print(colors.yellow(wrapped(displayText(problem), style).join("\n")));
  }
}

function optionLines(field: Field, width: number): string[] {
  if (field.type !== "choice") return [];
  const digits = String(field.options.length).length;
  return field.options.flatMap((option, index) => {
    const number = String(index + 1).padStart(digits);
    const label = displayText(field.labels?.[index] ?? option).replaceAll("\n", " ");
    const lines = chopText(label, width - digits - 5);
    return lines.map((line, at) => `  ${at === 0 ? number : " ".repeat(digits)}  ${line}`);
  });
}

function promptFor(field: Field): string {
  if (field.type === "yes_no") return "y or n";
  if (field.type !== "choice")
    return field.type === "text" && field.format === undefined ? "Answer" : capital(wanted(field));
  const numbers = field.many ? "Numbers (such as 1,3)" : "Number";
  return field.other ? `${numbers}, or your own answer` : numbers;
}

/** The options by their numbers; other words stand for themselves. */
function parseChoice({ options, many }: Extract<Field, { type: "choice" }>, typed: string) {
  const pick = (word: string): string => (/^\d+$/.test(word) ? (options[Number(word) - 1] ?? word) : word);
  if (!many) return pick(typed);
  return typed
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "")
    .map(pick);
}
