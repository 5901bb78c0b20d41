/** Lays the content of a request out as lines for a terminal. A line that is broken over several is marked. */
import { type DiffLine, diffLines } from "../../core/diff.ts";
import { type Colors, chopText, withoutTabs, wrapText } from "./text.ts";

export interface BodyStyle {
  colors: Colors;
  /** Columns of the terminal. */
  width: number;
}

export interface RequestLines {
  /** The asking agent and its request. */
  title: string[];
  body: string[];
  /** Further facts, such as the deadline. */
  notes: string[];
}

export const wrapped = (text: string, { width }: Pick<BodyStyle, "width">): string[] =>
  wrapText(text, width - 1).flatMap((line) => chopText(line, width - 1));

/** A unified diff with a gutter: the number of each line in its file, and whether it is added or removed. */
export function diffBody(diff: string, { colors, width }: BodyStyle): string[] {
  const lines = diffLines(diff);
  const digits = String(Math.max(0, ...lines.map(lineNumber))).length;
  const paint: Record<DiffLine["kind"], (text: string) => string> = {
    add: colors.green,
    del: colors.red,
    hunk: colors.cyan,
    file: colors.bold,
    context: String,
    note: colors.dim,
  };
  return lines.flatMap((line) => {
    const { kind, text } = line;
    const isOfFile = kind === "add" || kind === "del" || kind === "context";
    const number = isOfFile ? String(lineNumber(line) || "").padStart(digits) : " ".repeat(digits);
    const sign = kind === "add" ? "+" : kind === "del" ? "-" : " ";
    const pieces = chopText(withoutTabs(isOfFile ? text.slice(1) : text), Math.max(width - digits - 6, 8));
    return pieces.map((piece, index) => {
      const gutter = index === 0 ? `  ${colors.dim(number)} ` : `  ${" ".repeat(digits)} `;
      return gutter + paint[kind](`${index === 0 ? sign : CONTINUED} ${piece}`);
    });
  });
}

/** A command or other text as it is, with a bar before each of its lines. */
export const textBody = (text: string, { colors, width }: BodyStyle): string[] =>
  text
    .split("\n")
    .flatMap((line) =>
      chopText(withoutTabs(line), Math.max(width - 5, 8)).map(
        (piece, index) => `  ${colors.dim(index === 0 ? "│" : CONTINUED)} ${piece}`,
      ),
    );

/** Stands before the second and further parts of one line. */
const CONTINUED = "┆";

const lineNumber = ({ newLine, oldLine = 0 }: DiffLine): number => newLine ?? oldLine;
