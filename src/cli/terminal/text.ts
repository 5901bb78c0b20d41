/** Widths and colours of terminal text. */
import { eastAsianWidth } from "get-east-asian-width";
import type { Check } from "../../app/checks/check.ts";
import { timeZone } from "../../core/clock.ts";
import { MARK, control } from "./printer.ts";

/** Columns that `text` takes in a terminal; escape sequences for colour take none. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of CHARACTERS.segment(text.replace(COLOUR, ""))) width += characterWidth(segment);
  return width;
}

/** `text`, which holds no colours, cut to `columns` with an ellipsis, never inside a character. */
export function fit(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  const [first = ""] = chopText(text, columns - 1);
  const kept = displayWidth(first) < columns ? first : "";
  return columns > 0 ? `${kept}…` : "";
}

/** `text`, which holds no colours, in pieces of at most `columns` (at least two), none cut inside a character. */
export function chopText(text: string, columns: number): string[] {
  if (PLAIN.test(text) && text.length <= columns) return [text];
  const pieces: string[] = [];
  let piece = "";
  let width = 0;
  for (const { segment } of CHARACTERS.segment(text)) {
    const own = characterWidth(segment);
    if (width + own > columns && piece !== "") {
      pieces.push(piece);
      piece = "";
      width = 0;
    }
    piece += segment;
    width += own;
  }
  return [...pieces, piece];
}

/** `text`, which may hold colours, broken between words into lines of at most `columns`. Leaves longer words whole. */
export const wrapText = (text: string, columns: number): string[] =>
  text.split("\n").flatMap((paragraph) => {
    const lines: string[] = [];
    let line = "";
    let width = 0;
    for (const word of paragraph.split(" ")) {
      const own = displayWidth(word);
      const isFirst = line === "";
      const fits = isFirst || width + 1 + own <= columns;
      if (!fits) lines.push(line);
      line = isFirst || !fits ? word : `${line} ${word}`;
      width = isFirst || !fits ? own : width + 1 + own;
    }
    return [...lines, line];
  });

const NO_BREAK = "\u00a0";

/** `text` for `wrapText` to keep on one line. `withBlanks` shows it. */
export const unbroken = (text: string): string => text.replaceAll(" ", NO_BREAK);

/** The lines of `wrapText`, with blanks where `unbroken` put others. */
export const withBlanks = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replaceAll(NO_BREAK, " "));

/** `text` with its tabs as blanks, up to every fourth column. */
export function withoutTabs(text: string): string {
  const [first = "", ...parts] = text.split("\t");
  return parts.reduce((line, part) => line + " ".repeat(4 - (displayWidth(line) % 4)) + part, first);
}

/** `text` with blanks behind it up to `columns`. */
export const padded = (text: string, columns: number): string =>
  text + " ".repeat(Math.max(columns - displayWidth(text), 0));

/** Columns of one character as people see it. A sequence of emoji takes the room of one. */
function characterWidth(character: string): number {
  if (EMOJI_SEQUENCE.test(character)) return 2;
  let width = 0;
  for (const point of character)
    if (!NO_WIDTH.test(point)) width += eastAsianWidth(point.codePointAt(0) ?? 0);
  return width;
}

const CHARACTERS = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const PLAIN = /^[ -~]*$/;
/** A colour sequence, which may still have the mark that the printer takes away. */
const COLOUR = new RegExp(`(?:${MARK})?\u001b\\[[0-9;]*m`, "g");
/** Marks, formats, controls, and the letters of Korean that join the one before them. */
const NO_WIDTH = /^[\p{M}\p{Cf}\p{Cc}\u1160-\u11ff\ud7b0-\ud7ff]$/u;
/** Flags, pictures joined to one, and signs that a selector turns into pictures. */
const EMOJI_SEQUENCE =
  /^(?:\p{Regional_Indicator}{2}|\p{Extended_Pictographic}.*(?:\u200d|\ufe0f|\p{Emoji_Modifier})|.\ufe0f\u20e3)/u;

export type Colors = ReturnType<typeof colorsFor>;

/** Colours for a terminal that can show them, none for anything else (https://no-color.org). */
export function colorsFor(output: { isTTY?: boolean }, env: Readonly<Record<string, string | undefined>>) {
  const isColorSupported = output.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const style = (begins: number, ends: number): ((text: string) => string) => {
    const [begin, end] = [control(`\u001b[${begins}m`), control(`\u001b[${ends}m`)];
    // A style inside it may end with the same code.
    return (text) => (isColorSupported ? begin + text.replaceAll(end, end + begin) + end : text);
  };
  return {
    isColorSupported,
    bold: style(1, 22),
    dim: style(2, 22),
    italic: style(3, 23),
    underline: style(4, 24),
    strikethrough: style(9, 29),
    red: style(31, 39),
    green: style(32, 39),
    yellow: style(33, 39),
    cyan: style(36, 39),
  };
}

/** Checks as people see them, one each: a mark, its name, and its text with an indent. */
export const checkLines = (checks: readonly Check[], colors: Colors): string[] =>
  checks.map(({ name, ok, text }) => {
    const mark = ok ? colors.green("✔") : colors.red("✖");
    const lines = wrapText(text, Math.max((process.stdout.columns || Infinity) - 16, 20));
    return `${mark} ${name.padEnd(14)}${lines.join(`\n${" ".repeat(16)}`)}`;
  });

/** Returns the columns of the terminal. A pipe, or a terminal that does not report them, has room for long lines. */
export const columnsOf = (output: { columns?: number }): number => output.columns || 100;

/** Colours and columns of the standard output. In a pipe, rows of a list are as long as their texts. */
export const outputStyle = () => ({
  colors: colorsFor(process.stdout, process.env),
  width: columnsOf(process.stdout),
  rowWidth: process.stdout.isTTY ? columnsOf(process.stdout) : Infinity,
});

/** Such as `2026-01-31 12:00`, where the server is. */
export const localTime = (time: number): string =>
  new Date(time).toLocaleString("sv-SE", { timeZone: timeZone(), dateStyle: "short", timeStyle: "short" });
