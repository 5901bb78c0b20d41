/** Widths and colours of terminal text. */
import { eastAsianWidth } from "get-east-asian-width";
import picocolors from "picocolors";

/** Columns that `text` takes in a terminal; escape sequences for colour take none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const { segment } of CHARACTERS.segment(text.replace(COLOUR, ""))) width += characterWidth(segment);
  return width;
}

/** `text`, which holds no colours, cut to `columns` with an ellipsis, never inside a character. */
export function fit(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const { segment } of CHARACTERS.segment(text)) {
    width += characterWidth(segment);
    if (width > columns - 1) break;
    kept += segment;
  }
  return columns > 0 ? `${kept}…` : "";
}

/** `text` broken between words into lines of at most `columns`; longer words are cut. */
export function wrapText(text: string, columns: number): string[] {
  return text.split("\n").flatMap((paragraph) => {
    const lines: string[] = [];
    let line = "";
    for (const word of paragraph.split(" ")) {
      const longer = line === "" ? word : `${line} ${word}`;
      if (displayWidth(longer) <= columns || line === "") {
        line = longer;
      } else {
        lines.push(line);
        line = word;
      }
    }
    return [...lines, line].map((part) => fit(part, columns));
  });
}

/** Columns of one character as people see it. A sequence of emoji takes the room of one. */
function characterWidth(character: string): number {
  if (EMOJI_SEQUENCE.test(character)) return 2;
  let width = 0;
  for (const point of character)
    if (!NO_WIDTH.test(point)) width += eastAsianWidth(point.codePointAt(0) ?? 0);
  return width;
}

const CHARACTERS = new Intl.Segmenter(undefined, { granularity: "grapheme" });
// oxlint-disable-next-line no-control-regex -- the escape character starts a colour sequence
const COLOUR = /\u001b\[[0-9;]*m/g;
const NO_WIDTH = /^[\p{M}\p{Cf}\p{Cc}]$/u;
/** Flags, pictures joined to one, and signs that a selector turns into pictures. */
const EMOJI_SEQUENCE =
  /^(?:\p{Regional_Indicator}{2}|\p{Extended_Pictographic}.*(?:\u200d|\ufe0f|\p{Emoji_Modifier})|.\ufe0f\u20e3)/u;

export type Colors = ReturnType<typeof picocolors.createColors>;

/** Colours for a terminal that can show them, none for anything else (https://no-color.org). */
export function colorsFor(
  output: { isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Colors {
  const wanted = output.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  return picocolors.createColors(wanted);
}
