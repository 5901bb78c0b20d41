/** Learns request rules from refusals: a pure function, and the file that stores its results. */
import { appendFileSync, readFileSync } from "node:fs";
import { orElse } from "../../../core/errors.ts";
import { parsedJson, recordOf } from "../../../core/unknown.ts";
import { asArray } from "../tool-schema.ts";
import { type Json, type Wire, isForced } from "./outgoing.ts";
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
  const personsMatter =
    /content (?:policy|filter|management)|safety|moderation|flagged|prohibited|billing|credit|quota|balance|insufficient|payment|subscription|arrear|api[ _-]?key|unauthori[sz]ed|permission|rate.?limit|(?:unknown|invalid|unsupported|no such) model\b/i;
  if (personsMatter.test(refused.text)) return undefined;
  const sentences = refused.text.split(/(?<=[.!;])\s/);
  for (const { words, about, change } of LESSONS) {
    const isSaid = sentences.some((sentence) => words.every((word) => word.test(sentence)));
    const lesson = isSaid ? change(refused) : undefined;
    const rules = lesson && joinRules(refused.rules, lesson);
    if (lesson && JSON.stringify(rules) !== JSON.stringify(refused.rules))
      return {
        rules: lesson,
        about: lesson.drop === undefined ? about : `${about} ${lesson.drop.join(", ")}`,
      };
  }
  return undefined;
}

const messageList = ({ body }: RefusedRequest): Json[] => asArray(body["messages"]).map(recordOf);
const roles = (refused: RefusedRequest): unknown[] => messageList(refused).map(({ role }) => role);
const hasCalls = (refused: RefusedRequest): boolean =>
  messageList(refused).some(({ tool_calls }) => asArray(tool_calls).length > 0);
const hasTools = ({ body }: RefusedRequest): boolean => asArray(body["tools"]).length > 0;
const when = (holds: boolean, rules: RequestRules): RequestRules | undefined => (holds ? rules : undefined);

const UNWANTED =
  /param|unknown|unrecogni|unexpected|unsupported|not (?:be|supported|permitted|allowed|accepted|available|enabled|recogni)|extra (?:input|field)|invalid|additional propert|(?:not|n't) support|deprecated|incompatible|cannot|only/i;

/**
 * Subjects of refusals, the least ambiguous words first. A sentence of the refusal has all words of a row; its change is
 * `undefined` if the refusal is not about anything in the request. The tests quote public reports for each row.
 */
const LESSONS: ReadonlyArray<{
  words: readonly RegExp[];
  about: string;
  change: (refused: RefusedRequest) => RequestRules | undefined;
}> = [
  {
    words: [/cache[_ -]?control|cache[_ -]?point|prompt[_ -]?caching|ephemeral/i],
    about: "cache marks",
    change: ({ body, wire, rules: { marks } }) =>
      wire === "messages"
        ? { marks: "cache_control" in body && marks !== "blocks" ? "blocks" : "none" }
        : { markText: false },
  },
  {
    words: [
      /\/responses\b|responses (?:api|endpoint)|the \/?(?:v1\/)?chat[/ ]completions? (?:endpoint|api)/i,
    ],
    about: "chat completions: this model is asked by the responses API",
    change: ({ wire }) => when(wire === "chat", { wire: "responses" }),
  },
  {
    words: [/tool[_ ]?choice|thinking/i, /choice|forc|tool/i],
    about: "a forced tool call",
    change: ({ body }) => when(isForced(body["tool_choice"]), { forced: "no" }),
  },
  {
    words: [/\bdeveloper\b/i],
    about: "the role `developer`",
    change: (refused) => when(roles(refused).includes("developer"), { systemRole: "system" }),
  },
  {
    words: [/\bsystem\b|developer instruction/i, UNWANTED],
    about: "the role `system`",
    change: (refused) => when(roles(refused).includes("system"), { systemRole: "user" }),
  },
  {
    words: [/thought_?signature/i],
    about: "calls without a thought signature",
    change: (refused) =>
      when(hasCalls(refused), { thoughts: { field: "signature", on: "calls", missing: "skip" } }),
  },
  {
    words: [/reasoning(?:_content|_details)?\b/i, UNWANTED],
    about: "reasoning in earlier replies",
    change: (refused) => {
      const names = ["reasoning_content", "reasoning", "reasoning_details"];
      const isSent = messageList(refused).some((message) => names.some((name) => name in message));
      return when(isSent, { thoughts: { field: "none" } });
    },
  },
  {
    words: [/reasoning_content/i, /must|missing|required|pass|need|provide/i],
    about: "replies without `reasoning_content`",
    change: () => ({ thoughts: { field: "reasoning_content", on: "all", missing: "empty" } }),
  },
  {
    words: [
      /tool[_ ]?(?:call|use)s?(?:[_.[\d\]]{0,9}|[ -])ids?\b/i,
      /length|a-z|alphanumeric|too long|invalid|pattern|9/i,
    ],
    about: "ids of calls in another form",
    change: (refused) => when(hasCalls(refused), { callIds: "nine" }),
  },
  {
    words: [/\buser\b|roles/i, /\bafter\b|alternate|follow/i],
    about: "a message of the user after tool results",
    change: (refused) =>
      when(
        roles(refused).some((role, at, all) => role === "user" && all[at - 1] === "tool"),
        { afterTool: "notUser" },
      ),
  },
  {
    words: [/tool/i, /must|require|without|specif|defin/i],
    about: "a history with calls and no tools",
    change: (refused) => when(hasCalls(refused) && !hasTools(refused), { needsTools: true }),
  },
  {
    words: [
      /content|text|message/i,
      /empty|blank|at least one|too short|min_?length|null|nil|none|required|(?:valid|be a|expected a) string/i,
    ],
    about: "an empty content beside calls",
    change: (refused) => {
      const isSent = messageList(refused).some(
        ({ role, content, tool_calls }) => role === "assistant" && !content && asArray(tool_calls).length > 0,
      );
      return when(isSent, { emptyContent: refused.rules.emptyContent === "null" ? "none" : "null" });
    },
  },
  {
    words: [UNWANTED],
    about: "the parameter",
    change({ text, body, rules }) {
      // Some servers write where they found it.
      const said = text.replaceAll("body.", "");
      const isNamed = (name: string): boolean => {
        const word = name.replace(/[^\w]/g, "");
        // Ordinary words count in quotation marks only.
        const mark = /^(?:text|user|stop|store|include|metadata|prompt)$/.test(name) ? "[\"'`]" : "[\"'`]?";
        return new RegExp(`(?<![\\w.-])${mark}${word}${mark}(?![\\w-])`, "i").test(said);
      };
      const mayGo = (name: string): boolean =>
        !NEEDED.includes(name) && name.length > 3 && rules.drop?.includes(name) !== true;
      const named = Object.keys(body).find((name) => mayGo(name) && isNamed(name));
      return named === undefined ? undefined : { drop: [named] };
    },
  },
  {
    words: [
      /grammar|schema|pattern|format|maxLength|minLength|\bstrict\b|additionalProperties|\$ref/i,
      /grammar|invalid|too complex|(?:not|un|n't)[ -]?(?:support|permit|allow|recogni|known|expected)/i,
    ],
    about: "bounds in the schemas of tools",
    change: (refused) =>
      when(hasTools(refused), { schema: refused.rules.schema === "plain" ? "text" : "plain" }),
  },
  {
    words: [/max(?:imum)?[_ ](?:completion[_ ]|output[_ ]|new[_ ])?tokens|output tokens|completion tokens/i],
    about: "the limit of output tokens",
    // The output limit under its other name, or with a smaller value that the refusal names.
    change({ text, body, wire }) {
      const names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
      const sent = names.find((name) => body[name] !== undefined);
      if (sent === undefined) return undefined;
      const numbers = (text.match(/\d[\d,]*/g) ?? []).map((digits) => Number(digits.replaceAll(",", "")));
      // Smaller numbers are statuses, or parts of names.
      const smaller = numbers.filter((number) => number >= 512 && number < Number(body[sent]));
      if (smaller.length > 0) return { most: { [sent]: Math.max(...smaller) } };
      const other = sent === "max_tokens" ? "max_completion_tokens" : "max_tokens";
      const isAboutName = text.includes(sent) && (text.includes(other) || UNWANTED.test(text));
      return when(wire === "chat" && isAboutName, { rename: { [sent]: other } });
    },
  },
  {
    words: [
      /support (?:tools?(?! (?:message|result|choice))|tool[ -](?:use|call)|function[ -]call)|(?:tools?|tool use|(?:tool|function)[ -]calling)["'`]? (?:is|are) not/i,
      /(?:not|n't|no endpoints found that) (?:support|available|enabled)/i,
    ],
    about: "tools: the agent can only answer. Left out:",
    change: (refused) => when(hasTools(refused), { drop: ["tools", "tool_choice", "parallel_tool_calls"] }),
  },
];

/** Members that every request needs, or that a person would miss. */
const NEEDED =
  "model messages input system instructions tools stream max_tokens max_completion_tokens contents".split(
    " ",
  );

interface Learned {
  rules: RequestRules;
  window?: number;
}

/** Rules learned by endpoint and model, in memory and in a file of the data folder. */
export class Lessons {
  readonly #file: string | undefined;
  readonly #known = new Map<string, Learned>();
  #isRead = false;

  constructor(file?: string) {
    this.#file = file;
  }

  of({ place, model }: Pick<Profile, "place" | "model">): Learned {
    // Servers are updated: what one refused is tried again after this time.
    const since = Date.now() - 30 * 86_400_000;
    const text =
      this.#isRead || this.#file === undefined
        ? ""
        : orElse(() => readFileSync(this.#file ?? "", "utf8"), "");
    this.#isRead = true;
    for (const line of text.split("\n")) {
      const { date, place: at, model: name, rules, window } = recordOf(parsedJson(line));
      const read = requestRules.safeParse(rules);
      if (read.success && Date.parse(String(date)) > since)
        this.#add(`${String(at)} ${String(name)}`, read.data, window);
    }
    return this.#known.get(`${place} ${model}`) ?? { rules: {} };
  }

  keep(profile: Pick<Profile, "place" | "model">, rules: RequestRules, window?: number): void {
    this.of(profile);
    const { place, model } = profile;
    this.#add(`${place} ${model}`, rules, window);
    if (this.#file === undefined) return;
    const line = JSON.stringify({ date: new Date().toISOString(), place, model, rules, window });
    // Without the file the server is asked again after the next start.
    orElse(() => appendFileSync(this.#file ?? "", `${line}\n`, { mode: 0o600 }), undefined);
  }

  #add(key: string, rules: RequestRules, window: unknown): void {
    const known = this.#known.get(key);
    const size = typeof window === "number" ? { window } : {};
    this.#known.set(key, { ...known, rules: joinRules(known?.rules, rules), ...size });
  }
}
