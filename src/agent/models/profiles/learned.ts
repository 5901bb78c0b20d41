/** Learns request rules from refusals: a pure function, and the file that stores its results. */
import { appendFileSync, readFileSync } from "node:fs";
import { orElse } from "../../../core/errors.ts";
import { parsedJson } from "../../../core/unknown.ts";
import { asArray } from "../tool-schema.ts";
import { z } from "zod";
import table from "./lessons.json" with { type: "json" };
import type { Json } from "../strict-chunks.ts";
import { THOUGHT_MEMBERS, type Wire, hasCalls, isForced, isUnthought, messageList } from "./outgoing.ts";
import { type Profile, joinRules } from "./profile.ts";
import { type RequestRules, requestRules } from "./schema.ts";

/** A refused request, and the words of its provider. */
export interface RefusedRequest {
  text: string;
  body: Json;
  wire: Wire;
  rules: RequestRules;
}

/** A change of the rules, and its subject in a few words for a person. */
export interface Lesson {
  rules: RequestRules;
  about: string;
}

/** The change that would let a refused request pass; `undefined` if the refusal names nothing that can be changed. */
export function learn(refused: RefusedRequest): Lesson | undefined {
  if (PERSONS_MATTER.test(refused.text)) return undefined;
  const sentences = refused.text.split(/(?<=[.!;])\s/);
  for (const { words, facts, about, change } of LESSONS) {
    const isSaid = sentences.some((sentence) => words.every((word) => word.test(sentence)));
    const lesson = isSaid && facts.every((holds) => holds?.(refused)) ? change(refused) : undefined;
    const rules = lesson && joinRules(refused.rules, lesson);
    if (lesson && JSON.stringify(rules) !== JSON.stringify(refused.rules))
      return { rules: lesson, about: [about, lesson.drop?.join(", ") ?? []].flat().join(" ") };
  }
  return undefined;
}

const some =
  (holds: (message: Json, at: number, all: Json[]) => boolean) =>
  ({ body }: RefusedRequest): boolean =>
    messageList(body).some(holds);

/** Facts of a refused request that rows of the table ask for. */
const FACTS: Readonly<Record<string, (refused: RefusedRequest) => boolean>> = {
  chat: ({ wire }) => wire === "chat",
  messages: ({ wire }) => wire === "messages",
  topMark: ({ body }) => "cache_control" in body,
  choice: ({ body }) => "tool_choice" in body,
  forced: ({ body }) => isForced(body["tool_choice"]),
  developer: some(({ role }) => role === "developer"),
  system: some(({ role }) => role === "system"),
  calls: some(hasCalls),
  tools: ({ body }) => asArray(body["tools"]).length > 0,
  noTools: ({ body }) => asArray(body["tools"]).length === 0,
  thoughts: some((message) => THOUGHT_MEMBERS.some((name) => name in message)),
  unthought: some(isUnthought),
  userAfterTool: some(({ role }, at, all) => role === "user" && all[at - 1]?.["role"] === "tool"),
  emptyReply: some((message) => message["role"] === "assistant" && !message["content"] && hasCalls(message)),
};

/** Changes that depend on the words of the refusal; `undefined` if they are not about anything in the request. */
const CHANGES: Readonly<Record<string, (refused: RefusedRequest) => RequestRules | undefined>> = {
  /** Leaves out a named parameter. */
  drop({ text, body, rules }) {
    // Some servers write where they found it.
    const said = text.replaceAll("body.", "");
    const isNamed = (name: string): boolean => {
      const word = name.replace(/[^\w]/g, "");
      // Ordinary words count in quotation marks only.
      const mark = /^(?:text|user|stop|store|include|metadata|prompt)$/.test(name) ? "[\"'`]" : "[\"'`]?";
      return new RegExp(`(?<![\\w.-])${mark}${word}${mark}(?![\\w-])`, "i").test(said);
    };
    // Some members every request needs, or a person would miss.
    const mayGo = (name: string): boolean =>
      !table.needed.includes(name) && name.length > 3 && rules.drop?.includes(name) !== true;
    const named = Object.keys(body).find((name) => mayGo(name) && isNamed(name));
    return named === undefined ? undefined : { drop: [named] };
  },
  /** Writes the output limit under its other name, or with a smaller value that the refusal names. */
  output({ text, body, wire }) {
    const names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    const sent = names.find((name) => body[name] !== undefined);
    if (sent === undefined) return undefined;
    const numbers = (text.match(/\d[\d,]*/g) ?? []).map((digits) => Number(digits.replaceAll(",", "")));
    // Smaller numbers are statuses, or parts of names.
    const smaller = numbers.filter((number) => number >= 512 && number < Number(body[sent]));
    if (smaller.length > 0) return { most: { [sent]: Math.max(...smaller) } };
    const other = sent === "max_tokens" ? "max_completion_tokens" : "max_tokens";
    const isAboutName = text.includes(sent) && (text.includes(other) || UNWANTED.test(text));
    return wire === "chat" && isAboutName ? { rename: { [sent]: other } } : undefined;
  },
};

const UNWANTED = new RegExp(table.unwanted, "i");
/** Refusals about content, keys, money and limits, which teach nothing. */
const PERSONS_MATTER = new RegExp(table.personsMatter, "i");

/**
 * Subjects of refusals, the least ambiguous words first. A sentence of the refusal has all words of a row, and the
 * request all its facts. The tests quote public reports for each row.
 */
const LESSONS = table.lessons.map(
  (row: { about: string; words: string[]; when?: string[]; rules?: object; change?: string }) => ({
    about: row.about,
    words: row.words.map((word) => (word === "{unwanted}" ? UNWANTED : new RegExp(word, "i"))),
    // A fact by its name, or `rule=value` for the present value of a rule.
    facts: (row.when ?? []).map((fact) => {
      const [name = "", value] = fact.split("=");
      return value === undefined
        ? FACTS[name]
        : ({ rules }: RefusedRequest) => String(Reflect.get(rules, name)) === value;
    }),
    change: CHANGES[row.change ?? ""] ?? ((): RequestRules | undefined => row.rules), // `learned.test.ts` checks the file
  }),
);

/** A line of the file. */
const RECORD = z.object({
  date: z.string(),
  place: z.string(),
  model: z.string(),
  rules: requestRules,
  window: z.number().optional(),
});
type Learned = Pick<z.output<typeof RECORD>, "rules" | "window">;

/** Rules learned by endpoint and model, in memory and in a file of the data folder. */
export class Lessons {
  readonly #file: string | undefined;
  readonly #known = new Map<string, Learned>();
  #isRead = false;

  constructor(file?: string) {
    this.#file = file;
  }

  of({ place, model }: Pick<Profile, "place" | "model">): Learned {
    const text = this.#isRead ? "" : orElse(() => readFileSync(this.#file ?? "", "utf8"), "");
    this.#isRead = true;
    // Servers are updated: what one refused is tried again after this time.
    const since = Date.now() - 30 * 86_400_000;
    for (const line of text.split("\n")) {
      const { data } = RECORD.safeParse(parsedJson(line));
      if (data !== undefined && Date.parse(data.date) > since) this.#add(data, data);
    }
    return this.#known.get(`${place} ${model}`) ?? { rules: {} };
  }

  keep({ place, model }: Pick<Profile, "place" | "model">, rules: RequestRules, window?: number): void {
    this.of({ place, model });
    this.#add({ place, model }, { rules, window });
    const line = JSON.stringify({ date: new Date().toISOString(), place, model, rules, window });
    // Without the file the server is asked again after the next start.
    orElse(() => appendFileSync(this.#file ?? "", `${line}\n`, { mode: 0o600 }), undefined);
  }

  #add({ place, model }: Pick<Profile, "place" | "model">, { rules, window }: Learned): void {
    const known = this.#known.get(`${place} ${model}`);
    const joined = { rules: joinRules(known?.rules, rules), window: window ?? known?.window };
    this.#known.set(`${place} ${model}`, joined);
  }
}
