import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applied, proposedFile } from "../../src/proposals/change.ts";
import type { Content } from "../../src/proposals/content.ts";
import type { Sides } from "../../src/proposals/workspace-copy.ts";
import { diffCounts } from "../../src/server/views/content/diff.ts";
import { attempts } from "../support/effort.ts";

/** Encodings of files. UTF-16 has a byte order mark. */
const ENCODINGS = ["utf8", "latin1", "utf16le"] as const;
type Encoding = (typeof ENCODINGS)[number];
const encoding = fc.constantFrom(...ENCODINGS);

const file = (text: string, encoding: Encoding): Content => ({
  kind: "file",
  bytes: Buffer.from(encoding === "utf16le" ? `\ufeff${text}` : text, encoding),
  executable: false,
});
const textIn = (content: Content | undefined, encoding: Encoding): string | undefined =>
  content?.kind === "file" ? content.bytes.toString(encoding).replace(/^\ufeff/, "") : undefined;

const sidesIn =
  (encoding: Encoding) =>
  (base: string, proposed: string, folder = base): Sides => ({
    path: "a.txt",
    base: file(base, encoding),
    proposed: file(proposed, encoding),
    folder: { content: file(folder, encoding), version: "v" },
    ignored: false,
  });
const NONE = { decided: {} };

/** Texts of few different lines, with line ends of all kinds, and with or without one at the end. */
const text = fc
  .tuple(
    fc.array(fc.tuple(fc.constantFrom("a", "b", "é", "", " ü "), fc.constantFrom("\n", "\n", "\r\n")), {
      maxLength: 40,
    }),
    fc.constantFrom("", "end"),
  )
  .map(([lines, end]) => lines.map((line) => line.join("")).join("") + end);

describe("the places of a file", () => {
  it("make the proposed file when all are applied, in any two steps too", () => {
    fc.assert(
      fc.property(text, text, fc.nat(), fc.boolean(), encoding, (base, proposed, number, isRenamed, as) => {
        const sides = sidesIn(as);
        fc.pre(base !== proposed);
        const whole = { ...sides(base, proposed), ...(isRenamed ? { from: "old.txt" } : {}) };
        const { places, added, removed } = proposedFile(whole, NONE);
        expect(textIn(applied(whole, "all", false)?.folder, as)).toBe(proposed);
        for (const place of places) expect(place).toMatchObject(diffCounts(place.diff));
        expect(places.reduce((sum, place) => sum + place.added, 0)).toBe(added);
        expect(removed).toBeGreaterThanOrEqual(0);
        const chosen = places.map((_, index) => index).filter((index) => ((number >> index) & 1) === 1);
        const part = chosen.length === 0 ? undefined : applied(whole, chosen, false);
        if (part === undefined || part.isWhole) return;
        expect(part.folder).toEqual(part.base);
        // The rest is proposed on top of what is applied, and makes the whole of it.
        const rest = sides(textIn(part.base, as) ?? "", proposed, textIn(part.folder, as));
        expect(textIn(applied(rest, "all", false)?.folder, as)).toBe(proposed);
      }),
      attempts(2000),
    );
  });

  it("lose nothing that the folder has by now: they are merged with it, or it is in the way", () => {
    fc.assert(
      fc.property(text, text, text, encoding, (base, proposed, folder, as) => {
        const sides = sidesIn(as);
        fc.pre(base !== proposed && base !== folder && proposed !== folder);
        const moved = sides(base, proposed, folder);
        const { places, conflict } = proposedFile(moved, NONE);
        const isFree = conflict === undefined && places.every((place) => place.conflict === undefined);
        const result = applied(moved, "all", false);
        expect(result === undefined).toBe(!isFree);
        expect(textIn(applied(moved, "all", true)?.base, as)).toBe(proposed);
        if (result === undefined) return;
        // Merging is the same from both sides.
        const back = applied(sides(base, folder, proposed), "all", false);
        expect(textIn(back?.folder, as)).toBe(textIn(result.folder, as));
      }),
      attempts(2000),
    );
  });
});
