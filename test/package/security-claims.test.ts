// Each sentence about safety has a test that fails if the sentence is false.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "../commands/built-bin.ts";
import { CLAIMS } from "./claims/claims.ts";
import { section, sentences } from "./claims/sentences.ts";
import { testTitles } from "./claims/titles.ts";

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const PAGES = { "SECURITY.md": read("SECURITY.md"), "README.md": section(read("README.md"), "## Safety") };
const WRITTEN = Object.entries(PAGES).flatMap(([page, text]) =>
  sentences(text).map((sentence) => ({ page, sentence })),
);

describe("each sentence of SECURITY.md and of the safety section of README.md", () => {
  test("has a row in claims.ts with its tests, or with the reason why it is not a claim", () => {
    const missing = WRITTEN.filter(({ sentence }) => !Object.hasOwn(CLAIMS, sentence));
    expect(missing.map(({ page, sentence }) => `no row for this sentence of ${page}: ${sentence}`)).toEqual(
      [],
    );
  });

  test("is still there if it has a row", () => {
    const known = new Set(WRITTEN.map(({ sentence }) => sentence));
    const gone = Object.keys(CLAIMS).filter((sentence) => !known.has(sentence));
    expect(gone.map((sentence) => `a row for a sentence that no page has: ${sentence}`)).toEqual([]);
  });

  test("names tests that exist", () => {
    const titles = new Map<string, Set<string>>();
    const titlesIn = (file: string): Set<string> => {
      const known = titles.get(file) ?? (existsSync(join(ROOT, file)) ? testTitles(read(file)) : new Set());
      titles.set(file, known);
      return known;
    };
    const missing = Object.entries(CLAIMS).flatMap(([sentence, claim]) => {
      if (typeof claim === "string") return [];
      const tests = Object.entries(claim).flatMap(([file, names]) => names.map((name) => ({ file, name })));
      if (tests.length === 0) return [`no test for: ${sentence}`];
      return tests
        .filter(({ file, name }) => !titlesIn(file).has(name))
        .map(({ file, name }) => `${file} has no test "${name}", which is to check: ${sentence}`);
    });
    expect(missing).toEqual([]);
  });
});

const PAGE = `# Page

<!-- contact: generated -->
Not a claim of ours.
<!-- end -->

One claim. **Another one:** with \`code\`. [A third](docs/x.md) has a link, e.g. this.

| protects | record |
|---|---|
| A cell. A second sentence ([010](docs/010.md)). | [011](docs/011.md) |

Does **not** protect:

- An item without a full stop

| who | may |
|---|---|
| a **token** | read; write. "All" of it. |

## Next

Outside.
`;

test("sentences are found in paragraphs, list items and tables", () => {
  expect(sentences(PAGE)).toEqual([
    "One claim.",
    "Another one: with `code`.",
    "A third has a link, e.g. this.",
    "A cell.",
    "A second sentence (010).",
    "An item without a full stop",
    "a token: read; write.",
    'a token: "All" of it.',
    "Outside.",
  ]);
  expect(sentences(section(PAGE, "## Next"))).toEqual(["Outside."]);
  expect(() => section(PAGE, "## None")).toThrow('no heading "## None"');
});

test("titles are those of tests that run", () => {
  const source = `
    describe("a group", () => {
      test("plain", () => {});
      it("with \\"quotes\\"", { tags: "long" }, () => {});
      test.each([[1, (2)]])(
        "for %s", () => {});
      test.skip("skipped", () => {});
      // test("a comment", () => {});
    });`;
  expect([...testTitles(source)]).toEqual(["plain", 'with "quotes"', "for %s"]);
});
