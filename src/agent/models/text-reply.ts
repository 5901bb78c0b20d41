/** Reads tool calls and thoughts that a model wrote as text, for servers that do not read them. */
import type { AIMessage } from "@langchain/core/messages";
import { textOf } from "../messages/messages.ts";
import { looseJson } from "../../core/loose-json.ts";
import { isRecord, recordOf } from "../../core/unknown.ts";
import { mendName } from "./reply.ts";
import { type Strategy, answerInText, hasCalls } from "./structured-answer.ts";
import table from "./text-forms.json" with { type: "json" };

/**
 * Forms of calls. The first group of an opening may be the name of the tool. The inside is JSON, JSON or tagged
 * parameters after that name, Python, or text between marks.
 */
const FORMS = table.forms.map(({ opening, inside, closing }) => ({
  opening: new RegExp(opening, "y"),
  inside: inside as "json" | "arguments" | "python" | "marked", // the words of the table
  closing: new RegExp(closing, "y"),
}));

/** Parts of Python's literals that JSON writes in another way, and strings. */
const PYTHON =
  /"""((?:[^"\\]|\\[^]|"(?!""))*)"""|"[^"\\]*(?:\\[^][^"\\]*)*"?|'([^'\\]*(?:\\[^][^'\\]*)*)'?|[()[\]{}]|\b(?:True|False|None)\b|\b([A-Za-z_]\w*)\s?=/g;

const THOUGHT_TAGS: Readonly<Record<string, string>> = table.thoughts;

/** Finds code, quotations, JSON that may be a call, and characters that may begin a tag. */
const SCAN =
  /`[^`\n]+`|^[ \t]*(?:>[^\n]*|(?<fence>`{3,}|~{3,})(?<info>(?:[^\n`~][^\n`]*)?)$|(?<bare>\[?\s?\{\s?"(?:name|type)"\s?:))|(?<![`"'“‘«])[<[]/gm;

/** Tags of thoughts, the first of them at the beginning of a line only; tags of an answer; first words of calls. */
const TAGS = Object.entries(table.tags).map(([name, forms]) => `(?<${name}>${forms.join("|")})`);
const TAG = new RegExp(TAGS.join("|"), "y");

type Found = { start: number; end: number; word: string } & Partial<
  Record<"fence" | "info" | "bare" | "tag" | "token" | "closed" | "mark" | "call", string>
>;

/** The next code, quotation, tag or beginning of a call; an empty word at the end of the text if there is none. */
function nextFound(text: string, from: number): Found {
  SCAN.lastIndex = from;
  for (let found = SCAN.exec(text); found !== null; found = SCAN.exec(text)) {
    const [word] = found;
    const start = found.index;
    if (word !== "<" && word !== "[") return { start, end: SCAN.lastIndex, word, ...found.groups };
    TAG.lastIndex = start;
    const named = TAG.exec(text);
    if (named === null) continue;
    const isInLine = start > 0 && !/\n[ \t]*$/.test(text.slice(Math.max(start - 9, 0), start));
    if (named.groups?.["tag"] === undefined || !isInLine)
      return { start, end: TAG.lastIndex, word: named[0], ...named.groups };
  }
  return { start: text.length, end: text.length, word: "" };
}

/**
 * Reads the text of a reply that has no calls. A call counts only at the end of the text, outside of code and
 * quotations, and only if it names one of `tools`; all else stays text. Without `tools`, reads thoughts alone. Returns
 * the thoughts without their tags and exactly as written. `isIncomplete`: the call at the end cannot be read.
 */
export function readTextReply(text: string, tools: readonly string[]) {
  const cuts: Cut[] = [];
  const thoughts: string[] = [];
  let tagged = "";
  const takeThought = (from: number, inside: string, to: number): void => {
    cuts.push([from, to]);
    thoughts.push(inside.trim());
    tagged += text.slice(from, to);
  };
  const unclosed = new Set<string>();
  let open: [from: number, inside: number] | undefined;
  let markup: Markup | undefined;
  let end = text.length;
  // More attempts to read a call would take long in a text full of openings.
  let attempts = 32;
  let isFirst = true;
  for (let at = 0; markup === undefined;) {
    const { start, word, fence, info = "", tag, token = tag, ...found } = nextFound(text, at);
    if (word === "") break;
    at = found.end;
    const { closed, mark, call, bare } = found;
    const closing = THOUGHT_TAGS[token ?? ""] ?? "";
    isFirst &&= cuts.length === 0;
    if (token !== undefined && !unclosed.has(closing)) {
      const to = text.indexOf(closing, at);
      if (to >= 0) takeThought(start, text.slice(at, to), to + closing.length);
      else if (withoutCuts(text.slice(0, start), cuts) === "") open ??= [start, at];
      if (to >= 0) at = to + closing.length;
      else unclosed.add(closing);
    } else if (closed !== undefined && isFirst && open === undefined) {
      // The opening was in the prompt, unless it is a part of a line before.
      const before = text.slice(0, start);
      if (!before.includes(closed.replace("/", ""))) takeThought(0, before, at);
      isFirst = false;
    }
    if (mark !== undefined && (cuts.length > 0 || mark.includes("<|message|>"))) cuts.push([start, at]);
    const isCode = info.trim() === "tool_code";
    if ((isCode || (call ?? bare) !== undefined) && tools.length > 0) {
      attempts -= 1;
      const from = start + word.search(/\S/);
      const read = attempts < 0 ? undefined : new Markup(text, from, tools);
      if (read?.reachesEnd(bare !== undefined) && (!isCode || !read.isBroken)) [markup, end] = [read, from];
      else if (!isCode && read) at = Math.max(at, read.at);
    }
    if (fence !== undefined) at = endOfFence(text, at, fence);
  }
  if (open) takeThought(open[0], text.slice(open[1], end), end);
  if (markup) cuts.push([end, text.length]);
  const { calls = [], isBroken: isIncomplete = false } = markup ?? {};
  const kept = cuts.length === 0 ? text : withoutCuts(text, cuts);
  return { text: kept, calls, thoughts: thoughts.join("\n\n").trim(), tagged, isIncomplete };
}

/** End of the fenced code whose first line ends at `from`; the end of the text if it is not closed. */
function endOfFence(text: string, from: number, fence: string): number {
  const line = /^[ \t]*(`{3,}|~{3,})[ \t]*$/gm;
  line.lastIndex = from;
  for (const { 0: last, 1: marks, index } of text.matchAll(line))
    if (marks?.startsWith(fence)) return index + last.length;
  return text.length;
}

/**
 * Reads the text of `reply`: calls in it become its calls, and thoughts leave it, but for a copy with their tags to be
 * sent back. Changes `reply`. Returns true if its text ended with a call that cannot be read. A structured answer by
 * `strategy` is never read as a call.
 */
export function readMarkup(reply: AIMessage, tools: readonly string[], strategy?: Strategy): boolean {
  const { content, additional_kwargs: kwargs } = reply;
  const hasAll = hasCalls(reply) || (strategy && answerInText(reply, strategy) !== undefined);
  const text = textOf(reply);
  const read = readTextReply(text, hasAll ? [] : tools);
  // Some models make their call within their thoughts, and write nothing else.
  const isSilent = !hasAll && read.text === "" && read.calls.length === 0;
  const all = text === "" ? kwargs["reasoning_content"] : read.thoughts;
  const within = isSilent && typeof all === "string" ? readTextReply(all, tools) : undefined;
  if (within !== undefined && within.calls.length > 0) {
    reply.tool_calls = within.calls.map((call) => ({ ...call, type: "tool_call" }));
    kwargs["reasoning_content"] = within.text;
  }
  if (read.text === text) return false;
  if (typeof content === "string") reply.content = read.text;
  else {
    const at = content.findIndex(({ type }) => type === "text");
    const block = { ...content[at], type: "text", text: read.text };
    const isKept = ({ type }: (typeof content)[number], index: number) => type !== "text" || index === at;
    reply.content = content.filter(isKept).map((one) => (one.type === "text" ? block : one));
  }
  // OpenAI's package would send this copy in place of the message.
  delete reply.response_metadata["output"];
  if (read.calls.length > 0) reply.tool_calls = read.calls.map((call) => ({ ...call, type: "tool_call" }));
  if (read.tagged !== "") kwargs["tagged_thoughts"] = read.tagged;
  if (read.thoughts !== "") kwargs["reasoning_content"] ??= read.thoughts;
  return read.isIncomplete;
}

type Cut = [from: number, to: number];

function withoutCuts(text: string, cuts: readonly Cut[]): string {
  const kept = cuts.map(([from], index) => text.slice(cuts[index - 1]?.[1] ?? 0, from));
  return [...kept, text.slice(cuts.at(-1)?.[1] ?? 0)].join("").trim();
}

/** Tags around calls; those of the first group can begin one, and some of the others end an answer. */
const SECTION = new RegExp(`(${table.sections.begins.join("|")})|${table.sections.ends.join("|")}`, "y");

/** Reads the markup of calls from `start` to the end of the text. */
class Markup {
  readonly text: string;
  readonly tools: readonly string[];
  readonly before: string;
  readonly calls: Array<{ name: string; args: Record<string, unknown> }> = [];
  at: number;
  /** A call cannot be read. It may be the end of the text that cuts it. */
  isBroken = false;

  constructor(text: string, start: number, tools: readonly string[]) {
    this.text = text;
    this.tools = tools;
    this.before = text.slice(Math.max(start - 10, 0), start);
    this.at = start;
  }

  /** True if nothing but calls of offered tools follows, complete or broken. `isBare`: they are JSON without tags. */
  reachesEnd(isBare: boolean): boolean {
    const followsBlankLine = /(?:^|\n[ \t]{0,4}\n)[ \t]{0,4}$/.test(this.before);
    if (isBare && !(followsBlankLine && this.json(true))) return false;
    for (let mayBegin = !isBare; ;) {
      this.skip(/\s*/y);
      if (this.at >= this.text.length) break;
      const isRead = this.readForm();
      if (isRead === false) return false;
      if (isRead === true) mayBegin = false;
      else {
        const tag = this.skip(SECTION);
        if (tag !== null) mayBegin = tag[1] !== undefined;
        else if (mayBegin && this.skipTruncated()) break;
        else return false;
      }
    }
    // A lone tag inside of a line may be a word of it.
    if (this.calls.length === 0 && !this.isBroken) this.isBroken = /(?:^|\n)[ \t]{0,9}$/.test(this.before);
    return this.calls.length > 0 ? !(isBare && this.isBroken) : this.isBroken && !isBare;
  }

  skip(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found !== null) this.at = pattern.lastIndex;
    return found;
  }

  /** Skips a name and a tag that the end of the text cuts. */
  skipTruncated(): boolean {
    const pattern =
      /(?:<\|(?:start|channel)\|>[\w .=-]{0,150}){0,2}(?:<\|constrain\|>\w{0,9})?[^\s<]{0,80}\s{0,9}(?:<[^<>]{0,80})?$/y;
    return this.skip(pattern) !== null;
  }

  /** Reads the call that begins here. Returns undefined if none does, false if it is none of an offered tool. */
  readForm(): boolean | undefined {
    for (const { opening, inside, closing } of FORMS) {
      const found = this.skip(opening);
      if (found === null) continue;
      const isRead = this[inside](found[1] ?? "", closing);
      this.skip(/\s*/y);
      this.skip(closing);
      return isRead;
    }
    return undefined;
  }

  /** Adds a call. Returns false if its tool is not offered. */
  take(given: string, args: unknown): boolean {
    const name = mendName(given, this.tools);
    const isOffered = this.tools.includes(name);
    if (isOffered && isRecord(args)) this.calls.push({ name, args });
    else this.isBroken = true;
    return isOffered;
  }

  /** Finds the end of the bracket that closes the open ones; undefined if the text ends before. */
  closingBracket(token: RegExp, open = 0): number | undefined {
    token.lastIndex = this.at;
    let depth = open;
    for (let found = token.exec(this.text); found !== null; found = token.exec(this.text)) {
      depth += /^[[({]$/.test(found[0]) ? 1 : /^[\])}]$/.test(found[0]) ? -1 : 0;
      if (depth === 0) return token.lastIndex;
    }
    return undefined;
  }

  /** The JSON of an object or list that begins here; undefined if it is not complete. */
  value(): unknown {
    const start = this.at;
    const end = this.closingBracket(/"[^"\\]*(?:\\[^][^"\\]*)*"?|[[\]{}]/g);
    this.at = end ?? this.text.length;
    return end === undefined ? undefined : looseJson(this.text.slice(start, end));
  }

  /** Reads objects or lists of calls. `isStrict`: they have a name and arguments, and nothing else. */
  json(isStrict: unknown): boolean {
    do {
      for (const item of [this.value()].flat()) {
        const call = recordOf(item);
        const inner = isRecord(call["function"]) ? call["function"] : call;
        const { name, tool_name = name, arguments: given, parameters = given, args = parameters } = inner;
        const called = typeof tool_name === "string" ? tool_name : call["function"];
        const keys = Object.keys(call).filter((key) => key !== "type" || call[key] !== "function");
        const isPlain = keys.length === 2 && name !== undefined && (given ?? parameters) !== undefined;
        if (isStrict === true && !isPlain) return false;
        if (typeof called !== "string") this.isBroken = true;
        else if (!this.take(called, typeof args === "string" ? looseJson(args) : (args ?? {}))) return false;
      }
    } while (this.skip(/[\s,;]*(?=\{)/y));
    return true;
  }

  /** Reads the arguments of a call: a JSON object, also in a fence, or tagged parameters. */
  arguments(name: string, closing: RegExp): boolean {
    // The end of the text may cut the name.
    if (this.at >= this.text.length) return (this.isBroken = true);
    this.skip(/\s*(?:```(?:json)?\s*)?/y);
    if (this.text[this.at] !== "{") return this.take(name, this.parameters(closing));
    const args = this.value();
    this.skip(/\s*```/y);
    return this.take(name, args);
  }

  /** Reads tagged parameters. Their values are text, or JSON where the tag declares it. */
  parameters(closing: RegExp): Record<string, unknown> | undefined {
    const args: Record<string, unknown> = {};
    const pattern =
      /<(antml:|[｜|]DSML[｜|])?parameter(?:=|\sname=)"?([^">\n]{1,200})"?(?:\sstring="(true|false)")?\s?>|<arg_key>([^<\n]{1,200})<\/arg_key>\s*<arg_value>/y;
    for (let tag = this.skip(pattern); tag !== null; tag = this.skip(pattern)) {
      const [, prefix = "", parameter, isText, key = parameter ?? ""] = tag;
      const end = parameter === undefined ? "</arg_value>" : `</${prefix}parameter>`;
      const start = this.at;
      let isEnd = false;
      // A value may hold such a tag; its own is followed by the next parameter or by the end of the call.
      for (let to = this.text.indexOf(end, start); !isEnd && to >= 0; to = this.text.indexOf(end, this.at)) {
        this.at = to + end.length;
        this.skip(/\s*/y);
        const next = this.at;
        isEnd = this.skip(pattern) !== null || this.skip(closing) !== null;
        this.at = next;
        if (isEnd) args[key] = this.text.slice(start, to).replace(/^\n/, "").replace(/\n$/, "");
      }
      if (!isEnd) this.at = this.text.length;
      if (isText === "false") args[key] = looseJson(String(args[key])) ?? args[key];
    }
    if (this.skip(closing) !== null) return args;
    this.skipTruncated();
    return undefined;
  }

  /** Reads calls of functions with named arguments, also in a list or printed. */
  python(): boolean {
    const words: Record<string, string> = { True: "true", False: "false", None: "null", "(": "[", ")": "]" };
    this.skip(/[\s[]*/y);
    do {
      const head = this.skip(/(print\()?([\w.-]+)\(/y);
      if (head === null) {
        this.isBroken = true;
        this.skipTruncated();
        return true;
      }
      // Without a parenthesis at their end, the arguments end with the text.
      const end = (this.closingBracket(PYTHON, 1) ?? this.text.length + 1) - 1;
      const written = this.text.slice(this.at, end).replaceAll(PYTHON, (token, long, single, key) => {
        const inner: unknown = long ?? single;
        if (typeof inner === "string")
          return `"${inner.replaceAll(/\\[^]|"/g, (part) => (part === `\\'` ? "'" : part === '"' ? '\\"' : part))}"`;
        if (typeof key === "string") return `"${key}":`;
        return words[token] ?? token;
      });
      this.at = end + 1;
      if (head[1] !== undefined) this.skip(/\s*\)/y);
      if (!this.take(head[2] ?? "", looseJson(`{${written}}`))) return false;
    } while (this.skip(/[\s,;]+(?=[A-Za-z_])/y));
    this.skip(/\s*\]?/y);
    return true;
  }

  /** Reads arguments as JSON without quotes, whose strings stand between marks. */
  marked(name: string): boolean {
    const mark = /<\|"\|>|<escape>|<tool_call\|>|<end_function_call>/g;
    let json = "";
    let isString = false;
    for (let from = this.at; ;) {
      mark.lastIndex = from;
      const found = mark.exec(this.text);
      const part = this.text.slice(from, found?.index);
      json += isString ? JSON.stringify(part) : part.replaceAll(/(?<![\w-])([A-Za-z_][\w-]*)\s?:/g, '"$1":');
      this.at = found?.index ?? this.text.length;
      if (found === null || (!isString && !/"|esc/.test(found[0]))) return this.take(name, looseJson(json));
      isString = !isString;
      from = mark.lastIndex;
    }
  }
}

/** The text of a reply while it is written, without thoughts and without calls, which may only turn out to be text. */
export class VisibleText {
  #shown: string;
  /** Begins with the last character that was shown; the rest may become a tag. */
  #held = "\n";
  /** The end of thoughts or of fenced code. */
  #closing: string | undefined;
  #isHidden = false;
  #isFirst = true;

  constructor(before: string) {
    this.#shown = before;
  }

  /** Adds a piece, and returns what can be shown. */
  add(piece: string): string {
    this.#held += piece;
    while (this.step());
    return this.#shown;
  }

  /** Moves to the next tag. Returns false if there is none yet. */
  private step(): boolean {
    const closing = this.#closing;
    if (closing !== undefined) {
      const end = this.#held.indexOf(closing, 1);
      const to = end < 0 ? Math.max(this.#held.length - closing.length, 1) : end + closing.length;
      this.#move(to, !this.#isHidden);
      if (end < 0) return false;
      this.#closing = undefined;
      this.#isHidden = false;
      return true;
    }
    if (this.#isHidden) {
      this.#held = "";
      return false;
    }
    const { start, end, fence, info, tag, token = tag, ...found } = nextFound(this.#held, 1);
    const { word: whole, closed, mark, call, bare } = found;
    // More of the first line of a fence may follow.
    const isLine = fence !== undefined && end === this.#held.length && end - start < 100;
    if (whole === "" || isLine) {
      const tail = this.#held.slice(Math.max(start - 100, 1), start);
      const word = tail.split(/\s/).at(-1) ?? "";
      const held =
        word === "" ? tail.length - tail.trimEnd().length : word.slice(word.search(/[<[{`~]|$/)).length;
      this.#move(Math.max(start - held, 1), true);
      return false;
    }
    const isCall = info?.trim() === "tool_code" || (call ?? bare) !== undefined;
    this.#move(start, true);
    // A lone end of thoughts, whose opening was in the prompt.
    const isLone = closed !== undefined && this.#isFirst && !this.#shown.includes(closed.replace("/", ""));
    const isTag = isLone || isCall || (token ?? mark) !== undefined;
    this.#move(1 + end - start, !isTag);
    if (isLone) this.#shown = "";
    if ((token ?? closed) !== undefined) this.#isFirst = false;
    const closes = token === undefined ? fence && `\n${fence}` : THOUGHT_TAGS[token];
    this.#closing = isCall ? undefined : closes;
    this.#isHidden = isCall || token !== undefined;
    return true;
  }

  /** Takes the held text up to `to`. */
  #move(to: number, isShown: boolean): void {
    const text = this.#held.slice(1, to);
    if (isShown) this.#shown += this.#shown === "" ? text.trimStart() : text;
    this.#held = this.#held.slice(Math.max(to - 1, 0));
  }
}
