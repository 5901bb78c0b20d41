/** Reads the conversation and the outputs of tools, as far as the rules of the offline model need them. */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { trimEndOf } from "../../../core/text.ts";
import { isTask } from "../../conversation/messages.ts";

/** One call of the current turn with what came back; without a result it counts as failed. */
export interface CallRecord {
  name: string;
  args: Record<string, unknown>;
  result: string;
  failed: boolean;
}

/** The conversation from the newest task on. */
export interface Turn {
  /** Text of that message. */
  task: string;
  /** What was said while the task was worked on. */
  told: string[];
  calls: CallRecord[];
}

/** A tool as it was bound. */
export interface OfferedTool {
  name: string;
  description: string;
}

/** What to say and call next; without calls it is the final answer. */
export interface Step {
  text: string;
  calls: PlannedCall[];
}

export interface PlannedCall {
  name: string;
  args: Record<string, unknown>;
}

export function currentTurn(messages: readonly BaseMessage[]): Turn {
  const start = messages.findLastIndex(isTask);
  const results = new Map<string, ToolMessage>();
  for (const message of messages.slice(start + 1)) {
    if (ToolMessage.isInstance(message) && !results.has(message.tool_call_id)) {
      results.set(message.tool_call_id, message);
    }
  }
  const calls: CallRecord[] = [];
  for (const message of messages.slice(start + 1)) {
    if (!AIMessage.isInstance(message)) continue;
    for (const { id, name, args } of message.tool_calls ?? []) {
      const result = id === undefined ? undefined : results.get(id);
      const text = result?.text ?? "";
      const failed = result === undefined || result.status === "error" || REFUSED.test(text);
      calls.push({ name, args, result: text, failed });
    }
  }
  const told = messages.slice(start + 1).filter((message) => HumanMessage.isInstance(message));
  return { task: messages[start]?.text.trim() ?? "", told: told.map(({ text }) => text.trim()), calls };
}

/** How refusals begin, also where the status of a result was lost on the way. */
const REFUSED = /^(?:Error: |User rejected the tool call)/;

/** The calls of one tool, in order. */
export function callsOf(turn: Turn, name: string): CallRecord[] {
  return turn.calls.filter((call) => call.name === name);
}

/** A text argument, or `""`. */
export function textArgument({ args }: Pick<CallRecord, "args">, name: string): string {
  const value = args[name];
  return typeof value === "string" ? value : "";
}

/** The first line of a failure, without its prefix. */
export function failureText(call: CallRecord): string {
  const line = call.result.split("\n", 1)[0] ?? "";
  return line.replace(/^Error: /, "") || "no result came back";
}

export interface Entry {
  /** Without a trailing slash. */
  path: string;
  directory: boolean;
}

export interface Match {
  path: string;
  line: number;
  text: string;
}

/** Lines of `ls`: `/a/b.ts (12 bytes, modified …)` and `/a/ (directory)`. */
export function parseListing(output: string): Entry[] {
  return output.split("\n").flatMap((line) => {
    if (!line.startsWith("/")) return [];
    const path = line.replace(/ \((?:directory|\d[^()]*)\)\s*$/, "").trimEnd();
    const directory = path.endsWith("/") || line.trimEnd().endsWith("(directory)");
    const bare = trimEndOf(path, "/");
    return bare === "" ? [] : [{ path: bare, directory }];
  });
}

/** File paths of `glob`, and how many more there are than it shows. */
export function parsePaths(output: string): { paths: string[]; more: number } {
  const paths = output.split("\n").filter((line) => line.startsWith("/") && !line.endsWith("/"));
  const more = Number(/^\[(\d+) more not shown/m.exec(output)?.[1] ?? 0);
  return { paths, more };
}

/** Matches of `grep` in its form `content`: a line `/path:`, below it `  12: text`. */
export function parseMatches(output: string): Match[] {
  const matches: Match[] = [];
  let path: string | undefined;
  for (const line of output.split("\n")) {
    if (line.startsWith("/") && line.endsWith(":")) {
      path = line.slice(0, -1);
      continue;
    }
    const hit = /^\s+(\d+): ?(.*)$/.exec(line);
    if (path !== undefined && hit) matches.push({ path, line: Number(hit[1]), text: (hit[2] ?? "").trim() });
  }
  return matches;
}

/** Lines of `read_file`, those between two numbers counted on; continued pieces of a long line are left out. */
export function parseLines(output: string): { line: number; text: string }[] {
  let line = 0;
  return output.split("\n").flatMap((row) => {
    const [, label, text = ""] = /^(\d*)\t(.*)$/.exec(row) ?? [];
    if (label === undefined) return [];
    line = label === "" ? line + 1 : Number(label);
    return [{ line, text }];
  });
}

/** Most words worth searching for: each costs a search in every area. */
const MOST_WORDS = 5;
const LONGEST_TASK = 4000;

/**
 * What to search for, taken from the words of a task in any language: quoted text and names of things
 * (`camelCase`, `snake_case`, file names) first, then the longer words that are not everyday ones.
 */
export function searchWords(task: string): string[] {
  const text = task.slice(0, LONGEST_TASK);
  const quoted = [...text.matchAll(/[`"“„«']([^`"“”„«»'\n]{2,60})[`"”“»']/g)].map((hit) => hit[1] ?? "");
  const names = [...text.matchAll(/[\p{L}_$][\p{L}\p{N}_$]*(?:[.\-/_][\p{L}\p{N}_$]+)*/gu)]
    .map(([name]) => name)
    .filter((name) => /[a-z][A-Z]|_|\.\w{1,5}$|\w-\w|\/\w/.test(name));
  const plain = plainWords(text);
  const words: string[] = [];
  for (const candidate of [...quoted, ...names, ...plain]) {
    const word = candidate.trim();
    const known = words.some((other) => other.toLowerCase().includes(word.toLowerCase()));
    if (word.length >= 2 && !known) words.push(word);
    if (words.length === MOST_WORDS) break;
  }
  return words;
}

function plainWords(text: string): string[] {
  const words: string[] = [];
  for (const { segment, isWordLike } of new Intl.Segmenter("en", { granularity: "word" }).segment(text)) {
    const word = segment.toLowerCase();
    const shortest = /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}/u.test(word)
      ? 2
      : 4;
    const one = singular(word);
    const everyday = EVERYDAY.has(word) || EVERYDAY.has(one);
    if (isWordLike && word.length >= shortest && /\p{L}/u.test(word) && !everyday) words.push(one);
  }
  return words;
}

/** English plurals are searched in their singular, which finds both. */
function singular(word: string): string {
  return /[^su]s$/.test(word) && word.length > 4 ? word.slice(0, -1) : word;
}

const EVERYDAY = new Set(
  `able about above across after again agent against along also always among analyse analysis analyze another answer
anything around article before being below between both briefly bring bugs build call called cannot carefully change
check code codebase collect come compare complete contain could create current deep define defined definition describe detail different
directory does doing done down each easy either else enough especially every everything examine explain explore
file files find first folder following from full further general give goal good great have help here high however
identify important improve improvement include inside into investigate issue just keep kind know large last least
like line list little locate located long look main make many mark maybe mean might more most much must name need never next
nothing note only order other over overview part path people place please point possible present problem produce
project proper provide question quick quickly read really report repository research result review same save
search section seem several short should show similar simple since small some someone something still such suggest
summarise summarize summary sure take task tell text than thank that their them then there these they thing think
this those through time together under understand until upon used useful user using very want well what when where
whether which while whole whose will with within without word work workspace would write written your yours
aber alle allem allen alles also andere auch beim bitte dabei damit dann dass dein dem den denn deren dessen dies
diese diesem diesen dieser dieses doch dort durch eine einem einen einer eines einige etwas finde ganz gibt haben
hier ihre immer jede jeder kann kein keine können machen mehr mein nach nicht noch oder ohne projekt schreibe sein
seine sich sind soll suche über unser unter viel vom von vor wann warum welche welcher wenn werden wird wurde zeige
zum zur zusammen zwischen
ainsi alors après aussi autre avec avoir bien cela cette comme dans depuis deux donc elle entre être fait faire
fichier fichiers leur mais même moins nous notre pour plus projet quand quel quelle sans sont sous sujet tous tout
toute très trouve trouver une vers votre vous
algo antes archivo archivos como con cual cuando cómo desde donde dónde ellos entre esta este esto hacer hasta para
pero porque proyecto puede qué quien sobre sola solo también tiene`
    .split(/\s+/)
    .filter((word) => word !== ""),
);
