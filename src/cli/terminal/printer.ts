/** Writes to the terminal for all commands. */
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { showControl } from "../../core/text.ts";

/** Stands before each control character of ours. Text of others cannot contain it, because it is never written. */
export const MARK = `\u0000${randomUUID()}`;

/** Marks the control characters of our own sequences, so that `print` keeps them. Never pass it text of others. */
export const control = (sequence: string): string =>
  // oxlint-disable-next-line no-control-regex -- the expression is for control characters
  sequence.replaceAll(/[\u0000-\u001f]/g, (character) => MARK + character);

/** `text` with every control character and direction override escaped, except those that `control` marked. */
export const printable = (text: string): string =>
  text
    .split(MARK)
    .map((piece, index) => (index === 0 ? showControl(piece) : piece.charAt(0) + showControl(piece.slice(1))))
    .join("");

/** Writes `text` to a terminal, or to a pipe that may end at one. JSON stays the same JSON. */
export const print = (text: string, output: { write(text: string): unknown } = process.stdout): void =>
  void output.write(printable(text));

/** Longest unfinished line of a program that is buffered, in characters. */
const LONGEST_LINE = 65_536;

/**
 * Prints the output of a program that was started with pipes, line by line. Resolves with its exit code after the last
 * line; rejects if the program cannot be started.
 */
export function printOutput(program: ChildProcess): Promise<number | null> {
  for (const [stream, output] of [
    [program.stdout, process.stdout],
    [program.stderr, process.stderr],
  ] as const) {
    let line = "";
    stream?.setEncoding("utf8").on("data", (text: string) => {
      line += text;
      const end = line.length > LONGEST_LINE ? line.length : line.lastIndexOf("\n") + 1;
      if (end > 0) print(line.slice(0, end), output);
      line = line.slice(end);
    });
    stream?.on("end", () => print(line, output));
  }
  return new Promise((resolve, reject) => {
    program.once("error", reject);
    program.once("close", resolve);
  });
}
