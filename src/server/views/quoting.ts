/**
 * Puts texts of models, servers and files into Markdown such that they stay text: none of them becomes a link, an
 * image or a line of ours.
 */
import { beginningOf, displayName, oneLine, stripControl } from "../../core/text.ts";

const LINE = 300;

/**
 * A foreign text inside of a sentence. Backslashes keep Markdown from reading it; a reader without Markdown sees them
 * only where the text has signs of Markdown.
 */
export const asText = (text: string, limit = LINE): string =>
  oneLine(displayName(beginningOf(text)), limit).replace(MARKS, String.raw`\$&`);

/** Signs that Markdown acts on, and those that make addresses of words. An underscore between letters is none. */
const MARKS = /[\\`*[\]<>~&@]|(?<=\])\(|:(?=\/\/)|(?<=www)\.|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/giu;

/** A foreign text as a code block: indented, out of which no content can break. */
export const indented = (text: string): string => text.replace(/^/gm, INDENT);

export const INDENT = "    ";

/** On one line, within more backticks than the text itself has in a row. */
export function code(text: string): string {
  const line = oneLine(stripControl(text), LINE);
  const ticks = "`".repeat(longestRun(line) + 1);
  return `${ticks} ${line} ${ticks}`;
}

export function fenced(text: string, language: string): string {
  const shown = stripControl(text);
  const fence = "`".repeat(Math.max(3, longestRun(shown) + 1));
  return `${fence}${language}\n${shown}\n${fence}`;
}

export const quote = (text: string): string =>
  stripControl(text)
    .split("\n")
    .map((line) => `> ${line}`.trimEnd())
    .join("\n");

const longestRun = (text: string): number =>
  (text.match(/`+/g) ?? []).reduce((longest, run) => Math.max(longest, run.length), 0);
