/** Columns that `text` takes in a terminal; escape sequences for colour take none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text.replace(COLOUR, "")) width += characterWidth(character);
  return width;
}

/** `text`, which holds no colours, cut to `columns` with an ellipsis. */
export function fit(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns - 1) break;
    kept += character;
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

function characterWidth(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

// oxlint-disable-next-line no-control-regex -- the escape character starts a colour sequence
const COLOUR = /\u001b\[[0-9;]*m/g;
const NO_WIDTH = /^[\p{M}\p{Cf}\p{Cc}]$/u;
/** East Asian wide characters and pictographs. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;
