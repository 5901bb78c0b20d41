/** Finds the place that an edit probably meant when its text is not in the file. */
import { headOf } from "../core/text.ts";

/** The differences that are looked for, from the smallest on: each makes two lines equal that differ in nothing else. */
const FOLDS: readonly [difference: string, fold: (line: string) => string][] = [
  ["blanks at the ends of lines", (line) => line.trimEnd()],
  ["quotes or dashes", (line) => plainMarks(line).trimEnd()],
  ["tabs and spaces at the beginning of lines", (line) => line.trim()],
  ["the number before the line, which read_file adds", (line) => line.replace(/^\d+\t/, "").trim()],
  ["the number of blanks", (line) => line.replace(/\s+/g, " ").trim()],
  ["quotes, dashes, tabs and blanks", (line) => alike(line)],
  ["upper and lower case, quotes and blanks", (line) => plainMarks(line).replace(/\s+/g, "").toLowerCase()],
];

const plainMarks = (line: string): string =>
  line
    .replace(/[\u2018\u2019\u201a\u2032`\u201c\u201d\u201e\u2033"]/g, "'")
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u00a0\u2000-\u200a\u202f\u3000]/g, " ");

const alike = (line: string): string => plainMarks(line).replace(/\s+/g, " ").trim();

/** Describes the lines that are nearest to a missing text. Returns undefined if none are alike. */
export function nearestLines(text: string, missing: string): string | undefined {
  const lines = text.split("\n", 20_000).map((line) => line.replace(/\r$/, ""));
  const wanted = missing.replace(/^\n+|(?<!\n)\n+$/g, "").split(/\r?\n/);
  if (wanted.every((line) => line.trim() === "")) return undefined;
  for (const [difference, fold] of FOLDS) {
    const [folded, part] = [lines.map(fold), wanted.map(fold)];
    const at = folded.findIndex((_, start) => part.every((line, index) => folded[start + index] === line));
    if (at !== -1)
      return describeLines(
        lines,
        at,
        wanted.length,
        `differ${wanted.length === 1 ? "s" : ""} in ${difference}`,
      );
  }
  const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };
  const plain = missing.replaceAll(/\\([ntr"'`\\])/g, (_, sign: string) => escapes[sign] ?? sign);
  if (plain !== missing && lines.join("\n").includes(plain))
    return "The text is in the file, but escaped once too often here: write line breaks, tabs, quotes and backslashes as they are.";
  const known = lines.map(alike);
  for (const [index, line] of wanted.slice(0, 50).map(alike).entries()) {
    // A short line stands in many places.
    const at = line.length < 8 ? -1 : known.findIndex((each) => each.includes(line));
    if (at !== -1)
      return describeLines(
        lines,
        Math.max(at - index, 0),
        wanted.length,
        `${wanted.length === 1 ? "is" : "are"} alike, but not the same`,
      );
  }
  return undefined;
}

function describeLines(lines: readonly string[], at: number, count: number, difference: string): string {
  const end = Math.min(at + count, lines.length);
  const part = lines.slice(at, Math.min(end, at + 8)).map((line) => headOf(line, 200));
  const name = count === 1 ? `Line ${at + 1} of the file` : `Lines ${at + 1} to ${end} of the file`;
  return `${name} ${difference}:\n${part.join("\n")}`;
}
