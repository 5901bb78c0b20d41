/** Parses a conversation for the offline model's rules, and runs their step tables. */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { START_NOTE } from "../../../core/clock.ts";
import { trimEndOf } from "../../../core/text.ts";
import { isEndCheck, isTask } from "../../messages/messages.ts";
import { WORKSPACE_NOTE } from "../../messages/workspace-note.ts";
import everyday from "./everyday-words.json" with { type: "json" };

/** The tools that are offered: their descriptions by name. */
export type Tools = ReadonlyMap<string, string>;

/** A call of the current turn with its result; without a result it counts as failed. */
export interface CallRecord {
  name: string;
  args: Record<string, unknown>;
  result: string;
  failed: boolean;
}

/** The conversation from the newest task on. */
export interface OfflineTurn {
  task: string;
  /** Messages that arrived during the work. */
  remarks: string[];
  calls: CallRecord[];
}

/** The next reply: its text and calls. Without calls it is the final answer. */
export interface OfflineStep {
  text: string;
  calls: { name: string; args: Record<string, unknown> }[];
}

/** One row of a step table: calls of one tool. */
export interface StepRow<Work> {
  /** The item of the plan that begins with this row; an agent without any shows no plan. */
  todo?: string;
  tool: string;
  text: string;
  /** The arguments of the calls to make now; none when there is nothing to do. */
  args: (work: Work) => Record<string, unknown>[];
  /** True if the row may use a tool again in the same turn; `args` then decides when it is done. */
  repeats?: boolean;
}

/** The first row with calls to make by an offered tool, with the updated plan; else the answer. */
export function nextStep<Work extends { turn: OfflineTurn; tools: Tools }>(
  table: readonly StepRow<Work>[],
  work: Work,
  answer: (work: Work) => string,
): OfflineStep {
  const { turn, tools } = work;
  const plan = table.flatMap(({ todo }) => todo ?? []);
  /** The call that shows the plan with everything before `current` done; none when it already shows that. */
  const planUpdate = (current: number): OfflineStep["calls"] => {
    const todos = plan.map((content, index) => ({
      content,
      status: index < current ? "completed" : index === current ? "in_progress" : "pending",
    }));
    const shown = callsNamed(turn, "write_todos").at(-1)?.args["todos"] ?? [];
    const isShown = JSON.stringify(shown) === JSON.stringify(todos);
    return isShown || !tools.has("write_todos") ? [] : [{ name: "write_todos", args: { todos } }];
  };
  let current = -1;
  for (const { todo, tool, text, args, repeats } of table) {
    if (todo !== undefined) current += 1;
    const isUsed = !repeats && callsNamed(turn, tool).length > 0;
    const calls = isUsed || !tools.has(tool) ? [] : args(work).map((args) => ({ name: tool, args }));
    if (calls.length > 0) return { text, calls: [...planUpdate(current), ...calls] };
  }
  const calls = planUpdate(plan.length);
  return { text: calls.length > 0 ? "All steps are done." : answer(work), calls };
}

export function currentTurn(messages: readonly BaseMessage[]): OfflineTurn {
  const start = messages.findLastIndex(isTask);
  const later = messages.slice(start + 1);
  const results = later.filter((message) => ToolMessage.isInstance(message));
  const made = later.flatMap((message) => (AIMessage.isInstance(message) ? (message.tool_calls ?? []) : []));
  return {
    task: (messages[start]?.text ?? "").replace(START_NOTE, "").replace(WORKSPACE_NOTE, "").trim(),
    remarks: later
      .filter((message) => HumanMessage.isInstance(message) && !isEndCheck(message))
      .map((message) => message.text.trim()),
    calls: made.map(({ id, name, args }) => {
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

/** The path that a call is about, or `""`. */
export function callPath({ args }: CallRecord): string {
  const path = args["path"] ?? args["file_path"];
  return typeof path === "string" ? path : "";
}

/** The first line of a failure, without its prefix. */
export function failureText(call: CallRecord): string {
  const line = call.result.split("\n", 1)[0] ?? "";
  return line.replace(/^Error: /, "") || "no result came back";
}

export interface Match {
  path: string;
  line: number;
  text: string;
}

/** Lines of `ls`: `/a/b.ts (12 bytes, modified …)` and `/a/ (directory)`. Paths lose their slash at the end. */
export const parseListing = (output: string): { path: string; directory: boolean }[] =>
  output.split("\n").flatMap((line) => {
    if (!line.startsWith("/")) return [];
    const path = line.replace(/ \((?:directory|\d[^()]*)\)\s*$/, "").trimEnd();
    const directory = path.endsWith("/") || line.trimEnd().endsWith("(directory)");
    const bare = trimEndOf(path, "/");
    return bare === "" ? [] : [{ path: bare, directory }];
  });

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

/** Lines of `read_file`, with those between two numbers counted; leaves out continued pieces of a long line. */
export function parseLines(output: string, path: string): Match[] {
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
 * `snake_case`, file names) first, then the longer words that are not everyday ones.
 */
export function searchWords(task: string): string[] {
  const text = task.slice(0, 4000);
  const quoted = [...text.matchAll(/[`"“„«']([^`"“”„«»'\n]{2,60})[`"”“»']/g)].map((hit) => hit[1] ?? "");
  const names = [...text.matchAll(/[\p{L}_$][\p{L}\p{N}_$]*(?:[.\-/_][\p{L}\p{N}_$]+)*/gu)]
    .map(([name]) => name)
    .filter((name) => /[a-z][A-Z]|_|\.\w{1,5}$|\w-\w|\/\w/.test(name));
  const words: string[] = [];
  for (const candidate of [...quoted, ...names, ...plainWords(text)]) {
    const word = candidate.trim();
    const isKnown = words.some((other) => other.toLowerCase().includes(word.toLowerCase()));
    if (word.length >= 2 && !isKnown) words.push(word);
    // Each costs a search in every area.
    if (words.length === 5) break;
  }
  return words;
}

/** Words of four letters or more, or of two in scripts without blanks between words; plurals in their singular. */
const plainWords = (text: string): string[] =>
  [...new Intl.Segmenter("en", { granularity: "word" }).segment(text)].flatMap(({ segment }) => {
    const word = segment.toLowerCase();
    const one = /[^su]s$/.test(word) && word.length > 4 ? word.slice(0, -1) : word;
    const isShort =
      word.length <
      (/\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}/u.test(word) ? 2 : 4);
    return isShort || !/\p{L}/u.test(word) || EVERYDAY.has(word) || EVERYDAY.has(one) ? [] : [one];
  });

/** Words of four letters or more that do not describe a task. */
const EVERYDAY: ReadonlySet<string> = new Set(everyday.words.split(" "));
