import { expect, test } from "vitest";
import { formatPage } from "../../src/tools/read-file.ts";

const UNLIMITED = { maxLineChars: 10_000, maxChars: undefined };

test("the whole of a short file has no footer", () => {
  expect(formatPage({ lines: ["a", "b"], start: 0, total: 2, more: false }, UNLIMITED)).toEqual({
    text: "1\ta\n\tb",
    end: 2,
  });
});

test("a footer names the next offset", () => {
  expect(formatPage({ lines: ["k", "l"], start: 10, total: 20, more: true }, UNLIMITED)).toEqual({
    text: "11\tk\n\tl\n\n[lines 11-12 of 20; continue with offset=12]",
    end: 12,
    nextOffset: 12,
  });
  expect(formatPage({ lines: ["a"], start: 0, more: true }, UNLIMITED).text).toBe(
    "1\ta\n\n[lines 1-1; continue with offset=1]",
  );
});

test("pieces of a long line do not count as lines", () => {
  const page = formatPage(
    { lines: ["abcdef", "g"], start: 0, total: 3, more: true },
    { maxLineChars: 4, maxChars: undefined },
  );
  expect(page.text).toBe("1\tabcd\n1.1\tef\n\tg\n\n[lines 1-2 of 3; continue with offset=2]");
});

test("output over the limit is cut on a line end and stays below it", () => {
  const line = "x".repeat(93); // 100 characters with its number
  const page = formatPage(
    { lines: Array.from({ length: 50 }, () => line), start: 0, total: 50, more: false },
    { maxLineChars: 10_000, maxChars: 2000 },
  );
  expect(page.text.length).toBeLessThanOrEqual(2000);
  expect(page.end).toBeGreaterThan(10);
  expect(page.nextOffset).toBe(page.end);
  expect(page.text.endsWith(`\n\n[lines 1-${page.end} of 50; continue with offset=${page.end}]`)).toBe(true);
  expect(page.text.split("\n")[page.end - 1]).toBe(`${page.end % 5 === 0 ? page.end : ""}\t${line}`);
});

test("a line larger than the output is cut between its pieces, and paging goes on in it", () => {
  const line = Array.from({ length: 5000 }, (_, index) => index % 10).join("");
  const limits = { maxLineChars: 500, maxChars: 2000 };
  const first = formatPage({ lines: [line, "next"], start: 0, total: 2, more: false }, limits);
  expect(first.text.length).toBeLessThanOrEqual(2000);
  expect(first.text).toContain(
    "\n\n[line 1 has 5000 characters in 10 pieces; continue with offset=0 piece=3, or find text in it with grep]",
  );
  expect(first.text.split("\n").slice(0, 3)).toEqual([
    `1\t${line.slice(0, 500)}`,
    `1.1\t${line.slice(500, 1000)}`,
    `1.2\t${line.slice(1000, 1500)}`,
  ]);
  expect(first).toMatchObject({ end: 1, nextOffset: 0, nextPiece: 3 });
  const last = formatPage({ lines: [line, "next"], start: 0, piece: 9, total: 2, more: false }, limits);
  expect(last).toEqual({ text: `1.9\t${line.slice(4500)}\n\tnext`, end: 2 });
});

test("a piece that is not there is said, and the next line shown", () => {
  const page = { lines: ["a", "b"], start: 4, piece: 1, total: 6, more: false };
  expect(formatPage(page, UNLIMITED).text).toBe("6\tb\n\n[line 5 has no piece 1]");
});
