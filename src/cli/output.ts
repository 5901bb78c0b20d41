/** Writes results and problems of commands. */
import { isoTime } from "../core/clock.ts";
import { closestName } from "../core/options.ts";
import { oneLine } from "../core/text.ts";
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

/** Reports an unknown action of a command, with the likely one or all of them. */
export function unknownAction(command: string, name: string, actions: readonly string[]): 1 | 2 {
  const meant = closestName(name, actions);
  const what = name === "" ? `${command} needs an action` : `${command} has no action "${oneLine(name, 80)}"`;
  const message = `${what}${meant === undefined ? `: ${actions.join(", ")}` : `; did you mean ${meant}?`}`;
  return complain(message, 2);
}
