/** Parses a conversation for the offline model, and finds the next step by its rules. */
import { type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { START_NOTE } from "../../../core/clock.ts";
import { fill } from "../../../core/text.ts";
import { callsOf, isEndCheck, isTask } from "../../messages/messages.ts";
import { WORKSPACE_NOTE } from "../../messages/workspace-note.ts";
import everydayWords from "./everyday-words.json" with { type: "json" };
import rules from "./rules.json" with { type: "json" };

/** The tools that are offered: their descriptions by name. */
export type Tools = ReadonlyMap<string, string>;

/** The conversation from the newest task on. */
export type OfflineTurn = ReturnType<typeof currentTurn>;

/** A call of the turn with its result; without a result it counts as failed. */
export type CallRecord = OfflineTurn["calls"][number];

/** The next reply: its text and calls. Without calls it is the final answer. */
export type OfflineStep = { text: string; calls: Pick<CallRecord, "name" | "args">[] };

/**
 * Takes the first rule with calls to make by an offered tool, and updates the plan; answers if there is none.
 * `due`: arguments of the calls that each rule would make now, by their name in `rules.json`.
 */
export function nextStep(
  table: readonly { todo?: string; tool: string; calls: string; text: string; repeats?: boolean }[],
  { turn, tools, due }: { turn: OfflineTurn; tools: Tools; due: Record<string, Record<string, unknown>[]> },
  answer: () => string,
): OfflineStep {
  const at = table.findIndex(
    ({ tool, calls, repeats }) =>
      tools.has(tool) && due[calls]?.length && (repeats || callsNamed(turn, tool).length === 0),
  );
  const rule = table[at];
  const plan = table.flatMap(({ todo }) => todo ?? []);
  const begun = table.slice(0, at + 1).filter(({ todo }) => todo !== undefined).length;
  const current = rule ? begun - 1 : plan.length;
  const todos = plan.map((content, index) => ({
    content,
    status: index < current ? "completed" : index === current ? "in_progress" : "pending",
  }));
  const shown = callsNamed(turn, "write_todos").at(-1)?.args["todos"] ?? [];
  const isShown = JSON.stringify(shown) === JSON.stringify(todos);
  const update = isShown || !tools.has("write_todos") ? [] : [{ name: "write_todos", args: { todos } }];
  const calls = rule ? (due[rule.calls] ?? []).map((args) => ({ name: rule.tool, args })) : [];
  const made = [...update, ...calls];
  if (rule) return { text: fill(rule.text, rules.introduction), calls: made };
  return { text: made.length > 0 ? "All steps are done." : answer(), calls: made };
}

export function currentTurn(messages: readonly BaseMessage[]) {
  const start = messages.findLastIndex(isTask);
  const later = messages.slice(start + 1);
  const results = later.filter((message) => ToolMessage.isInstance(message));
  return {
    task: (messages[start]?.text ?? "").replace(START_NOTE, "").replace(WORKSPACE_NOTE, "").trim(),
    /** Messages that arrived during the work. */
    remarks: later
      .filter((message) => HumanMessage.isInstance(message) && !isEndCheck(message))
      .map((message) => message.text.trim()),
    calls: later.flatMap(callsOf).map(({ id, name, args }) => {
      const message = results.find(({ tool_call_id }) => tool_call_id === id);
      const result = message?.text ?? "";
      // Refusals begin so, also if the status of a result was lost on the way.
      const isRefused = /^(?:Error: |User rejected the tool call)/.test(result);
      const failed = message === undefined || message.status === "error" || isRefused;
      return { name, args, result, failed };
    }),
  };
}

export const callsNamed = (turn: OfflineTurn, name: string): CallRecord[] =>
  turn.calls.filter((call) => call.name === name);

/** The result of the first call of a tool for this path; empty if there is none or it failed. */
export function resultFor(turn: OfflineTurn, name: string, path: string): string {
  const call = callsNamed(turn, name).find((call) => callPath(call) === path);
  return call === undefined || call.failed ? "" : call.result;
}

/** The path that a call is about, or `""`. */
export const callPath = ({ args }: CallRecord): string => String(args["path"] ?? args["file_path"] ?? "");

/** The first line of a failure, without its prefix. */
export const failureText = ({ result }: CallRecord): string =>
  result.split("\n", 1)[0]?.replace(/^Error: /, "") || "no result came back";

/** Paths of `ls`, from lines like `/a/b.ts (12 bytes)` and `/a/ (directory)`; folders end with a slash. */
export const parseListing = (output: string): string[] =>
  output
    .split("\n")
    .filter((line) => line.startsWith("/"))
    .map((line) => line.replace(/ \((?:directory|\d[^()]*)\)\s*$/, "").trimEnd());

/** File paths of `glob`, and how many more there are than it shows. */
export const parsePaths = (output: string): { paths: string[]; more: number } => ({
  paths: output.split("\n").filter((line) => line.startsWith("/") && !line.endsWith("/")),
  more: Number(/^\[(\d+) more not shown/m.exec(output)?.[1] ?? 0),
});

export type Match = ReturnType<typeof parseLines>[number];

/** Matches of `grep` in its form `content`: a line `/path:`, below it `  12: text`. */
export function parseMatches(output: string) {
  let path = "";
  return output.split("\n").flatMap((line) => {
    if (line.startsWith("/") && line.endsWith(":")) path = line.slice(0, -1);
    const [, number, text = ""] = /^\s+(\d+): ?(.*)$/.exec(line) ?? [];
    return number === undefined || path === "" ? [] : [{ path, line: Number(number), text: text.trim() }];
  });
}

/** Lines of `read_file`, with those between two numbers counted; leaves out continued pieces of a long line. */
export function parseLines(output: string, path: string) {
  let line = 0;
  return output.split("\n").flatMap((row) => {
    const [, label, text = ""] = /^(\d*)\t(.*)$/.exec(row) ?? [];
    if (label === undefined) return [];
    line = label === "" ? line + 1 : Number(label);
    return [{ path, line, text }];
  });
}

/**
 * The words of a task to search for, in any language: quoted text and names of things (`camelCase`,
 * `snake_case`, file names) first, then the longer words that are not everyday ones. At most five, as each costs a
 * search in every area.
 */
export function searchWords(task: string): string[] {
  const text = task.slice(0, 4000);
  const quoted = [...text.matchAll(/[`"“„«']([^`"“”„«»'\n]{2,60})[`"”“»']/g)].map(([, quote = ""]) => quote);
  const names = [...text.matchAll(/[\p{L}_$][\p{L}\p{N}_$]*(?:[.\-/_][\p{L}\p{N}_$]+)*/gu)]
    .map(([name]) => name)
    .filter((name) => /[a-z][A-Z]|_|\.\w{1,5}$|\w-\w|\/\w/.test(name));
  const plain = [...new Intl.Segmenter("en", { granularity: "word" }).segment(text)].flatMap(
    ({ segment }) => {
      const word = segment.toLowerCase();
      const singular = /[^su]s$/.test(word) && word.length > 4 ? word.slice(0, -1) : word;
      // These scripts have no blanks between words, and shorter ones.
      const isDense = /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}/u.test(word);
      const isSpecific = word.length >= (isDense ? 2 : 4) && !EVERYDAY.has(word) && !EVERYDAY.has(singular);
      return isSpecific && /\p{L}/u.test(word) ? [singular] : [];
    },
  );
  const words: string[] = [];
  for (const word of [...quoted, ...names, ...plain].map((word) => word.trim())) {
    const isKnown = words.some((other) => other.toLowerCase().includes(word.toLowerCase()));
    if (word.length >= 2 && !isKnown) words.push(word);
  }
  return words.slice(0, 5);
}

/** Words of four letters or more that do not describe a task. */
const EVERYDAY = new Set(Object.values(everydayWords).flatMap((words) => words.split(" ")));
