import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import type { ReadResult } from "../../src/backends/backend.ts";
import { readFilePage, pageRequest, readTextPage } from "../../src/backends/pages.ts";
import { attempts } from "../support/effort.ts";
import { filesIn } from "../support/files-in.ts";

let directory: string;

beforeEach(() => {
  directory = filesIn();
});

async function fromFile(text: string, offset: number, limit: number): Promise<ReadResult> {
  const file = join(directory, "file.txt");
  writeFileSync(file, text);
  const descriptor = openSync(file, "r");
  try {
    return await readFilePage("/file.txt", descriptor, pageRequest(offset, limit), undefined);
  } finally {
    closeSync(descriptor);
  }
}

const text = fc.string({
  unit: fc.constantFrom("a", "é", "🎉", "\n", "\r\n", "\r", "\ufeff", " "),
  maxLength: 30,
});

describe("pages", () => {
  it("of a file and of a text are the same", async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.nat(8), fc.nat(8), async (content, offset, limit) => {
        expect(await fromFile(content, offset, limit)).toEqual(
          readTextPage("/file.txt", content, pageRequest(offset, limit)),
        );
      }),
      attempts(300),
    );
  });

  it("put together are the text", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 5 }), (content, limit) => {
        let together = "";
        let offset: number | undefined = 0;
        while (offset !== undefined) {
          const page = readTextPage("/a", content, pageRequest(offset, limit));
          expect(page.error).toBeUndefined();
          together += page.content as string;
          offset = page.nextOffset;
        }
        expect(together).toBe(content.replace(/^\ufeff/, ""));
      }),
    );
  });

  it("end at lines also where a buffer of the reader ends", async () => {
    // Lines of odd lengths around the size of one read.
    const lines = Array.from({ length: 9000 }, (_, index) => `${index} ${"é".repeat(index % 83)}\n`);
    const content = lines.join("");
    for (const offset of [0, 1234, 3120, 3121, 8990]) {
      const page = await fromFile(content, offset, 7);
      expect(page.content).toBe(lines.slice(offset, offset + 7).join(""));
    }
    expect(await fromFile("x".repeat(256 * 1024), 0, 1)).toMatchObject({ totalLines: 1, endLine: 1 });
    expect(await fromFile(`${"x".repeat(256 * 1024 - 1)}\n`, 0, 1)).toMatchObject({ totalLines: 1 });
    const next = await fromFile(`${"x".repeat(256 * 1024 - 1)}\ny`, 0, 1);
    expect(next).toMatchObject({ endLine: 1, nextOffset: 1 });
  });

  it("take a missing or odd request for a sensible one", () => {
    expect(pageRequest()).toEqual({ offset: 0, limit: 2000 });
    expect(pageRequest(-3, 2.7)).toEqual({ offset: 0, limit: 2 });
    expect(pageRequest(Number.NaN, Number.NaN)).toEqual({ offset: 0, limit: 2000 });
    expect(pageRequest(1.5, Number.POSITIVE_INFINITY)).toEqual({
      offset: 1,
      limit: Number.POSITIVE_INFINITY,
    });
  });
});
