/** Learns request rules from refusals: a pure function, and the file that stores its results. */
import { appendFileSync, readFileSync } from "node:fs";
import { orElse } from "../../../core/errors.ts";
import { parsedJson, recordOf } from "../../../core/unknown.ts";
import { asArray } from "../tool-schema.ts";
import { type Json, type Wire, isForced } from "./outgoing.ts";
import { type Profile, type RequestRules, joinRules, requestRules } from "./profile.ts";

/** A refused request, and the words of its provider. */
export interface Refusal {
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
export function learn(refused: Refusal): Lesson | undefined {
  if (PERSONS_MATTER.test(refused.text)) return undefined;
  for (const { words, about, change } of LESSONS) {
    const rules = words.test(refused.text) ? change(refused) : undefined;
    const isNew = JSON.stringify(joinRules(refused.rules, rules)) !== JSON.stringify(refused.rules);
    if (rules !== undefined && isNew) return { rules, about };
  }
  const name = namedMember(refused);
  if (name === undefined) return undefined;
  return { rules: { drop: [name] }, about: `the parameter ${name}` };
}

const PERSONS_MATTER =
  /content (?:policy|filter|management)|safety|moderation|flagged|prohibited|billing|credit|quota|balance|api[ _-]?key|unauthori[sz]ed|permission/i;

const messageList = ({ body }: Refusal): Json[] => asArray(body["messages"]).map(recordOf);
const roles = (refused: Refusal): unknown[] => messageList(refused).map(({ role }) => role);
const hasCalls = (refused: Refusal): boolean =>
  messageList(refused).some(({ tool_calls }) => asArray(tool_calls).length > 0);
const hasTools = ({ body }: Refusal): boolean => asArray(body["tools"]).length > 0;
const when = (holds: boolean, rules: RequestRules): RequestRules | undefined => (holds ? rules : undefined);

interface Row {
  words: RegExp;
  about: string;
  /** The change; `undefined` where the request does not have what the words are about. */
  change: (refused: Refusal) => RequestRules | undefined;
}

/** Subjects of refusals, the least ambiguous words first. The tests quote a public report for each row. */
const LESSONS: readonly Row[] = [
  {
    words: /cache[_ -]?control|cache[_ -]?point|prompt[_ -]?caching|ephemeral/i,
    about: "cache marks",
    change: ({ body, wire, rules: { marks } }) =>
      wire === "messages"
        ? { marks: "cache_control" in body && marks !== "blocks" ? "blocks" : "none" }
        : { markText: false },
  },
  {
    words: /\/responses\b|responses api/i,
    about: "chat completions: this model is asked by the responses API",
    change: ({ wire }) => when(wire === "chat", { wire: "responses" }),
  },
  {
    words:
      /tool[_ ]?choice|forced tool|tool use.{0,20}forced|(?:required|any)\b.{0,40}thinking|thinking.{0,40}tool/i,
    about: "a forced tool call",
    change: ({ body }) => when(isForced(body["tool_choice"]), { forced: "no" }),
  },
  {
    words: /\bdeveloper\b/i,
    about: "the role `developer`",
    change: (refused) => when(roles(refused).includes("developer"), { systemRole: "system" }),
  },
  {
    words:
      /system (?:role|message|prompt|instruction)s?.{0,40}(?:not|un)[ -]?(?:supported|allowed|enabled)|(?:not|un)[ -]?(?:support|allow)\w*.{0,20}\bsystem\b/i,
    about: "the role `system`",
    change: (refused) => when(roles(refused).includes("system"), { systemRole: "user" }),
  },
  {
    words: /thought_?signature/i,
    about: "calls without a thought signature",
    change: (refused) =>
      when(hasCalls(refused), { thoughts: { field: "signature", on: "calls", missing: "skip" } }),
  },
  {
    words:
      /reasoning_content.{0,80}(?:must|missing|required|pass|need|provide)|missing.{0,40}reasoning_content/i,
    about: "replies without `reasoning_content`",
    change: () => ({ thoughts: { field: "reasoning_content", on: "all", missing: "empty" } }),
  },
  {
    words:
      /reasoning(?:_content|_details)?\b.{0,60}(?:unsupported|not supported|not permitted|not allowed|unknown|unexpected|extra|unrecogni)|(?:unsupported|not permitted|unknown|unexpected|unrecogni[sz]ed|extra).{0,60}reasoning(?:_content|_details)?\b/i,
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
    words:
      /(?:tool.?call|call).{0,20}\bid\b.{0,80}(?:length|a-z|alphanumeric|9)|invalid.{0,20}tool.?call.?id/i,
    about: "ids of calls in another form",
    change: (refused) => when(hasCalls(refused), { callIds: "nine" }),
  },
  {
    words:
      /(?:role|message).{0,10}.?user.?.{0,30}after.{0,20}tool|user.{0,40}(?:follow|after).{0,30}tool|roles must alternate/i,
    about: "a message of the user after tool results",
    change: (refused) =>
      when(
        roles(refused).some((role, at, all) => role === "user" && all[at - 1] === "tool"),
        { afterTool: "notUser" },
      ),
  },
  {
    words:
      /without `?tools=?`?|`?tools=?`? (?:param|field|must|is required|should)|toolConfig.{0,40}(?:must|required|defined)|tools.{0,30}required.{0,30}(?:tool_calls|tool_use|history)/i,
    about: "a history with calls and no tools",
    change: (refused) => when(hasCalls(refused) && !hasTools(refused), { needsTools: true }),
  },
  {
    words:
      /content.{0,60}(?:empty|blank|non-?empty|at least one|too short|min_?length|null|required)|(?:empty|blank).{0,30}(?:content|text|message)/i,
    about: "an empty content beside calls",
    change: (refused) => {
      const isSent = messageList(refused).some(
        ({ role, content, tool_calls }) => role === "assistant" && !content && asArray(tool_calls).length > 0,
      );
      return when(isSent, { emptyContent: refused.rules.emptyContent === "null" ? "none" : "null" });
    },
  },
  {
    words:
      /grammar|json[ _-]?schema|(?:pattern|format|maxLength|minLength|\bstrict\b|additionalProperties|\$ref).{0,60}(?:not|un)[ -]?(?:support|permit|allow|recogni)|invalid (?:tool )?schema|schema.{0,40}(?:invalid|not supported|too complex)/i,
    about: "bounds in the schemas of tools",
    change: (refused) =>
      when(hasTools(refused), { schema: refused.rules.schema === "plain" ? "text" : "plain" }),
  },
  {
    words: /max(?:imum)?[_ ](?:completion[_ ]|output[_ ]|new[_ ])?tokens|output tokens|completion tokens/i,
    about: "the limit of output tokens",
    change: outputLimit,
  },
  {
    words:
      /(?:not|un|n't)[ -]?support\w*.{0,20}(?:tool|function)|(?:tool|function)s?(?: use| call\w*)?.{0,30}(?:not|un)[ -]?(?:support|available|enabled)/i,
    about: "tools: the agent can only answer",
    change: (refused) => when(hasTools(refused), { drop: ["tools", "tool_choice", "parallel_tool_calls"] }),
  },
];

const OUTPUT_LIMITS = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/** The other name of the limit of output tokens, or a smaller value that the words name. */
function outputLimit({ text, body, wire }: Refusal): RequestRules | undefined {
  const sent = OUTPUT_LIMITS.find((name) => body[name] !== undefined);
  if (sent === undefined) return undefined;
  const numbers = (text.match(/\d[\d,]*/g) ?? []).map((digits) => Number(digits.replaceAll(",", "")));
  const smaller = numbers.filter((number) => number >= 16 && number < Number(body[sent]));
  if (smaller.length > 0) return { most: { [sent]: Math.max(...smaller) } };
  if (wire !== "chat") return undefined;
  const other = sent === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  const isTaken = /(?:use|instead|did you mean|expected).{0,40}/i.test(text) && text.includes(other);
  return isTaken || other === "max_tokens" ? { rename: { [sent]: other } } : undefined;
}

/** Members that every request needs, or that a person would miss. */
const NEEDED = new Set(
  "model messages input system instructions tools stream max_tokens contents".split(" "),
);

/** A member of the request that the words name, and that it can do without. */
function namedMember({ text, body, rules }: Refusal): string | undefined {
  const isAboutForm =
    /param|unknown|unrecogni|unexpected|unsupported|not (?:supported|permitted|allowed|recogni)|extra (?:input|field)|invalid|additional propert|does not support/i;
  if (!isAboutForm.test(text)) return undefined;
  const isNamed = (name: string): boolean =>
    new RegExp(`(?<![\\w.-])["'\`]?${name.replace(/[^\w]/g, "")}["'\`]?(?![\\w-])`, "i").test(text);
  return Object.keys(body).find(
    (name) => !NEEDED.has(name) && name.length > 3 && rules.drop?.includes(name) !== true && isNamed(name),
  );
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
