/** Learns request rules from refusals: a pure function, and the file that stores its results. */
import { appendFileSync, readFileSync } from "node:fs";
import { headOf } from "../../../core/text.ts";
import { orElse } from "../../../core/errors.ts";
import { parsedJson, recordOf } from "../../../core/unknown.ts";
import { asArray } from "../tool-schema.ts";
import { type Json, type Wire, isForced } from "./outgoing.ts";
import { type Profile, type RequestRules, joinRules, requestRules } from "./profile.ts";

/** A refused request, and the words of its provider. */
export interface RefusedRequest {
  text: string;
  body: Json;
  wire: Wire;
  rules: RequestRules;
}

/** A change of the rules, and what it is about, in a few words for a person. */
export interface Lesson {
  rules: RequestRules;
  about: string;
}

/** The change that would let a refused request pass; `undefined` if the refusal names nothing that can be changed. */
export function learn(refused: RefusedRequest): Lesson | undefined {
  // Gateways add the request, or a page.
  const text = headOf(refused.text, LONGEST_TEXT);
  if (PERSONS_MATTER.test(text)) return undefined;
  for (const { words, about, change } of LESSONS) {
    const rules = words.every((word) => word.test(text)) ? change(refused) : undefined;
    const isNew = JSON.stringify(joinRules(refused.rules, rules)) !== JSON.stringify(refused.rules);
    if (rules !== undefined && isNew) return { rules, about: about ?? `the parameter ${rules.drop?.join()}` };
  }
  return undefined;
}

const LONGEST_TEXT = 2000;
const PERSONS_MATTER =
  /content (?:policy|filter|management)|safety|moderation|flagged|prohibited|billing|credit|quota|balance|api[ _-]?key|unauthori[sz]ed|permission/i;

const messageList = ({ body }: RefusedRequest): Json[] => asArray(body["messages"]).map(recordOf);
const roles = (refused: RefusedRequest): unknown[] => messageList(refused).map(({ role }) => role);
const hasCalls = (refused: RefusedRequest): boolean =>
  messageList(refused).some(({ tool_calls }) => asArray(tool_calls).length > 0);
const hasTools = ({ body }: RefusedRequest): boolean => asArray(body["tools"]).length > 0;
const when = (holds: boolean, rules: RequestRules): RequestRules | undefined => (holds ? rules : undefined);

/** Words of a refusal because something was sent, or because it was not. */
const NOT_TAKEN =
  /unsupported|not (?:supported|permitted|allowed|enabled|valid)|un(?:known|expected|recogni)|extra|does not support|invalid/i;
const NEEDED = /must|missing|require|pass|need|provide/i;

interface Row {
  /** All of them occur in the refusal. */
  words: readonly RegExp[];
  /** Default: the parameter that is dropped. */
  about?: string;
  /** The change; `undefined` where the request does not have what the words are about. */
  change: (refused: RefusedRequest) => RequestRules | undefined;
}

/** Subjects of refusals, the least ambiguous words first. The tests quote a public report for each row. */
const LESSONS: readonly Row[] = [
  {
    words: [/cache[_ -]?control|cache[_ -]?point|prompt[_ -]?caching|ephemeral/i],
    about: "cache marks",
    change: ({ body, wire, rules: { marks } }) =>
      wire === "messages"
        ? { marks: "cache_control" in body && marks !== "blocks" ? "blocks" : "none" }
        : { markText: false },
  },
  {
    words: [/\/responses\b|responses api/i],
    about: "chat completions: this model is asked by the responses API",
    change: ({ wire }) => when(wire === "chat", { wire: "responses" }),
  },
  {
    words: [/tool[_ ]?choice|forced|thinking/i],
    about: "a forced tool call",
    change: ({ body }) => when(isForced(body["tool_choice"]), { forced: "no" }),
  },
  { words: [NOT_TAKEN], change: namedMember },
  {
    words: [/\bdeveloper\b/i],
    about: "the role `developer`",
    change: (refused) => when(roles(refused).includes("developer"), { systemRole: "system" }),
  },
  {
    words: [/\bsystem\b/i, NOT_TAKEN],
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
    words: [/reasoning_content/i, NEEDED],
    about: "replies without `reasoning_content`",
    change: () => ({ thoughts: { field: "reasoning_content", on: "all", missing: "empty" } }),
  },
  {
    words: [/\breasoning/i, NOT_TAKEN],
    about: "reasoning in earlier replies",
    change: (refused) =>
      when(
        messageList(refused).some(
          (message) =>
            "reasoning_content" in message || "reasoning" in message || "reasoning_details" in message,
        ),
        { thoughts: { field: "none" } },
      ),
  },
  {
    words: [/call[ _-]?id|\bid\b/i, /length|a-z|alphanumeric|characters|invalid/i],
    about: "ids of calls in another form",
    change: (refused) => when(hasCalls(refused), { callIds: "nine" }),
  },
  {
    words: [/\buser\b/i, /\btool\b|alternat/i, /after|follow|alternat|order/i],
    about: "a message of the user after tool results",
    change: (refused) =>
      when(
        roles(refused).some((role, at, all) => role === "user" && all[at - 1] === "tool"),
        { afterTool: "notUser" },
      ),
  },
  {
    words: [/\btools\b|toolConfig/i, /without|must|required|should|missing|defined/i],
    about: "a history with calls and no tools",
    change: (refused) => when(hasCalls(refused) && !hasTools(refused), { needsTools: true }),
  },
  {
    words: [/content|text|message/i, /empty|blank|at least|too short|length|null|required/i],
    about: "an empty content beside calls",
    change: (refused) => {
      const isSent = messageList(refused).some(
        ({ role, content, tool_calls }) => role === "assistant" && !content && asArray(tool_calls).length > 0,
      );
      return when(isSent, { emptyContent: refused.rules.emptyContent === "null" ? "none" : "null" });
    },
  },
  {
    words: [
      /grammar|schema|pattern|maxLength|minLength|\bstrict\b|additionalProperties|\$ref/i,
      /fail|invalid|complex|large|not|un/i,
    ],
    about: "bounds in the schemas of tools",
    change: (refused) =>
      when(hasTools(refused), { schema: refused.rules.schema === "plain" ? "text" : "plain" }),
  },
  {
    words: [/max\w{0,20}[_ ]tokens|(?:output|completion|new)[_ ]tokens/i],
    about: "the limit of output tokens",
    change: outputLimit,
  },
  {
    words: [/\bthinking\b/i, NOT_TAKEN],
    about: "the parameter thinking",
    change: ({ body }) => when("thinking" in body, { drop: ["thinking", "output_config"] }),
  },
  {
    words: [/\btools?\b|\bfunctions?\b/i, /support|available|enabled/i],
    about: "tools: the agent can only answer",
    change: (refused) => when(hasTools(refused), { drop: ["tools", "tool_choice", "parallel_tool_calls"] }),
  },
];

const OUTPUT_LIMITS = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/** The other name of the limit of output tokens, or a smaller value that the words name. */
function outputLimit({ text, body, wire }: RefusedRequest): RequestRules | undefined {
  const sent = OUTPUT_LIMITS.find((name) => body[name] !== undefined);
  if (sent === undefined) return undefined;
  const numbers = (text.match(/\d[\d,]*/g) ?? []).map((digits) => Number(digits.replaceAll(",", "")));
  const smaller = numbers.filter((number) => number >= 16 && number < Number(body[sent]));
  if (smaller.length > 0) return { most: { [sent]: Math.max(...smaller) } };
  if (wire !== "chat") return undefined;
  const other = sent === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  return text.includes(other) || other === "max_tokens" ? { rename: { [sent]: other } } : undefined;
}

/** Members that every request needs, and those of which other rows know more. */
const NOT_DROPPED = new Set(
  "model messages input system instructions tools stream contents tool_choice cache_control thinking".split(
    " ",
  ),
);

/** A member of the request that the words name, and that it can do without. */
function namedMember({ text, body, rules }: RefusedRequest): RequestRules | undefined {
  const words = new Set(text.match(/\w+/g));
  const name = Object.keys(body).find(
    (member) =>
      words.has(member) &&
      !NOT_DROPPED.has(member) &&
      !OUTPUT_LIMITS.includes(member) &&
      rules.drop?.includes(member) !== true,
  );
  return name === undefined ? undefined : { drop: [name] };
}

/** Servers are updated: what one refused is tried again after this time. */
const LESSON_MS = 30 * 86_400_000;

/** Rules learned by endpoint and model, in memory and in a file of the data folder. */
export class Lessons {
  readonly #file: string | undefined;
  #known: Map<string, { rules: RequestRules; window?: number }> | undefined;

  constructor(file?: string) {
    this.#file = file;
  }

  of({ place, model }: Pick<Profile, "place" | "model">): { rules: RequestRules; window?: number } {
    this.#known ??= this.#read();
    return this.#known.get(`${place} ${model}`) ?? { rules: {} };
  }

  keep({ place, model }: Pick<Profile, "place" | "model">, rules: RequestRules, window?: number): void {
    const known = this.of({ place, model });
    const kept = { rules: joinRules(known.rules, rules), ...(window === undefined ? {} : { window }) };
    this.#known?.set(`${place} ${model}`, { ...known, ...kept });
    if (this.#file === undefined) return;
    const line = JSON.stringify({ date: new Date().toISOString(), place, model, rules, window });
    // Without the file the server is asked again after the next start.
    orElse(() => appendFileSync(this.#file ?? "", `${line}\n`, { mode: 0o600 }), undefined);
  }

  #read(): Map<string, { rules: RequestRules; window?: number }> {
    const known = new Map<string, { rules: RequestRules; window?: number }>();
    const text = this.#file === undefined ? "" : orElse(() => readFileSync(this.#file ?? "", "utf8"), "");
    for (const line of text.split("\n")) {
      const { date, place, model, rules, window } = recordOf(parsedJson(line));
      const read = requestRules.safeParse(rules);
      if (!read.success || !(Date.now() - Date.parse(String(date)) < LESSON_MS)) continue;
      const key = `${String(place)} ${String(model)}`;
      const before = known.get(key);
      known.set(key, {
        ...before,
        rules: joinRules(before?.rules, read.data),
        ...(typeof window === "number" ? { window } : {}),
      });
    }
    return known;
  }
}
