/** Code keeps its contrast on every background of a diff, also on those that few changes show. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const css = readFileSync(new URL("../../../src/server/page/assets/page.css", import.meta.url), "utf8");
const COLOURS = new Map(
  [...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) => [
    name,
    { light, dark },
  ]),
);
const LINES = ["surface", "sunken", "add", "del"];
const WORDS = ["add-word", "del-word"];
const CODE = ["text", "hl-key", "hl-str", "hl-num", "hl-fn"];
// Comments are paler, and take another colour where words are marked.
const PAIRS = [
  ...[...LINES, ...WORDS].flatMap((background) => CODE.map((colour) => [colour, background] as const)),
  ...LINES.map((background) => ["hl-com", background] as const),
  ...WORDS.map((background) => ["text-2", background] as const),
];

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(colour = "", background = ""): number {
  const [darker = 0, lighter = 0] = [luminance(colour), luminance(background)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

test.each(["light", "dark"] as const)("code stands out from all lines and words of a diff in %s", (theme) => {
  const faint = PAIRS.filter(
    ([colour, background]) =>
      !(contrast(COLOURS.get(colour)?.[theme], COLOURS.get(background)?.[theme]) >= 4.5),
  );
  expect(faint).toEqual([]);
});
