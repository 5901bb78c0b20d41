import fc from "fast-check";
import { expect, test } from "vitest";
import { displayBlock, displayMarked, displayName, displayText, escapeHidden } from "../../src/core/text.ts";

const shown = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(
        "\u200b",
        "\u202e",
        "\u3164",
        "\u2800",
        "\u{1d159}",
        "\u{e0041}",
        "\r",
        "\n",
        "\t",
        " ",
      ),
      fc
        .tuple(fc.constantFrom(" ", "\t", "\n", " \t"), fc.nat(200))
        .map(([unit, count]) => unit.repeat(count)),
    ),
  )
  .map((parts) => parts.join(""));

test("nothing in a shown text is hidden, pushes what follows out of sight or ends a line unseen", () => {
  fc.assert(
    fc.property(shown, (text) => {
      for (const display of [displayText, displayMarked, displayBlock]) {
        const result = display(text);
        expect(display(result)).toBe(result);
        expect(result).not.toMatch(/[ \t]{41}|[\u200b\u202e\u3164\u2800\r]/);
        expect(displayText(text).split("\n")).toHaveLength(text.split("\n").length);
      }
      expect(displayMarked(text)).not.toMatch(/[ \t]$/m);
      expect(displayBlock(text)).not.toMatch(/\n{22}/);
      const name = displayName(text);
      expect(name).not.toMatch(/[\n\t]|^ | $| {2}/);
      expect(displayName(name)).toBe(name);
    }),
  );
});

test("a shown name, typed into a JSON string, names the same; escaped JSON stays the same JSON", () => {
  fc.assert(
    fc.property(shown, (text) => {
      const plain = text.replace(/["\\]/g, "").toWellFormed();
      expect(JSON.parse(`"${displayName(plain)}"`)).toBe(plain);
      expect(JSON.parse(escapeHidden(JSON.stringify({ text })))).toEqual({ text });
    }),
  );
});

test.each([
  ["a b", "a b"],
  ["a.txt ", String.raw`a.txt\u0020`],
  ["a  b", String.raw`a\u0020\u0020b`],
  [" a", String.raw`\u0020a`],
])("the name %j is shown as %s", (name, as) => {
  expect(displayName(name)).toBe(as);
});

test("blanks are counted and marked", () => {
  expect(displayMarked(`ls${" ".repeat(300)}; rm x  \nb\t`)).toBe("ls[300 blanks]; rm x··\nb→");
  expect(displayText("\t".repeat(50))).toBe("[50 tabs]");
  expect(displayBlock(`a${"\n".repeat(31)}b`)).toBe("a\n[30 empty lines]\nb");
});
