/** Writes results and problems of commands. */
import { isoTime } from "../core/clock.ts";
import { closestName } from "../core/options.ts";
import { oneLine } from "../core/text.ts";
import commands from "./commands.json" with { type: "json" };
import { print } from "./terminal/printer.ts";
import { wrapText } from "./terminal/text.ts";

/** Breaks sentences between words at the terminal's width. Indented lines and JSON, which people copy, stay whole. */
const wrapped = (text: string, { columns }: { columns?: number }): string =>
  text
    .split("\n")
    .map((line) => (" {[".includes(line.charAt(0)) ? line : wrapText(line, columns || Infinity).join("\n")))
    .join("\n");

/** Writes lines to standard output. Returns the exit code of success. */
export function say(...lines: readonly string[]): 0 {
  print(lines.map((line) => `${wrapped(line, process.stdout)}\n`).join(""));
  return 0;
}

export const sayJson = (value: unknown): 0 => say(JSON.stringify(value, null, 2));

/** Writes a list as JSON, one object a line: `createdAt` becomes `created_at`, its milliseconds ISO 8601. */
export const sayRows = (rows: readonly object[]): 0 =>
  say(
    ...rows.map((row) => {
      const members = Object.entries(row).map(([name, value]: [string, unknown]) => [
        name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        typeof value === "number" && name.endsWith("At") ? isoTime(value) : value,
      ]);
      return JSON.stringify(Object.fromEntries(members));
    }),
  );

/** Prints why a command failed, a line for each problem. Returns the exit code. */
export function complain(problems: string | readonly string[], code: 1 | 2 = 1): 1 | 2 {
  const lines = [problems]
    .flat()
    .map((problem) => `${wrapped(`deepagent-mcp: ${problem}`, process.stderr)}\n`);
  print(lines.join(""), process.stderr);
  return code;
}

/** The words of actions in `commands.json`, as an error names them. */
const WORDS: Readonly<Record<string, string>> = {
  RUN: "the id of a run",
  '"TEXT"': "a text",
  SCHEDULE: "the name of a schedule",
  EXPRESSION: "a cron expression",
  '"TASK"': "a task, both in quotes",
  COMMAND: "a command, in quotes",
  "ID…": "an id",
};

/** Reads the action of a command and its words. Reports a mistake and returns its exit code. */
export function readAction(
  command: "access" | "news" | "rules" | "runs" | "schedule",
  positionals: readonly string[],
): { name: string; words: readonly string[] } | 1 | 2 {
  const { usage, actions } = commands[command];
  const labels = Object.keys(actions).map((label) => label.split(" "));
  const [name = usage.includes("[ACTION]") ? "list" : "", ...words] = positionals;
  const [known, ...takes] = labels.find(([action]) => action === name) ?? [];
  const names = labels.flatMap(([action]) => action ?? []);
  if (known === undefined) return unknownAction(command, name, names);
  const needed = takes.filter((word) => !word.startsWith("["));
  const missing = needed.map((word) => WORDS[word] ?? word).join(" and ");
  if (words.length < needed.length) return complain(`${command} ${name} needs ${missing}.`, 2);
  const extra = takes.at(-1)?.includes("…") ? undefined : words[takes.length];
  if (extra === undefined) return { name, words };
  const quoting = missing.includes("quotes") ? " Quote arguments that contain spaces." : "";
  return complain(`Unexpected argument "${oneLine(extra, 80)}" for ${command} ${name}.${quoting}`, 2);
}

/** Reports an unknown action of a command, with the likely one or all of them. */
export function unknownAction(command: string, name: string, actions: readonly string[]): 1 | 2 {
  const meant = closestName(name, actions);
  const what = name === "" ? `${command} needs an action` : `${command} has no action "${oneLine(name, 80)}"`;
  const message = `${what}${meant === undefined ? `: ${actions.join(", ")}` : `; did you mean ${meant}?`}`;
  return complain(message, 2);
}
