import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeUtf8 } from "../../src/core/utf8.ts";

const strict = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
};

test("bytes decode as the web's strict decoder decodes them", () => {
  const text = fc.string({ unit: "binary" }).map((one) => new TextEncoder().encode(one));
  const withMark = text.map((bytes) => Uint8Array.of(0xef, 0xbb, 0xbf, ...bytes));
  fc.assert(
    fc.property(fc.oneof(text, withMark, fc.uint8Array()), fc.nat(3), (bytes, skipped) => {
      const part = bytes.subarray(skipped);
      expect(decodeUtf8(part)).toBe(strict(part));
    }),
    {
      examples: [
        [new Uint8Array(), 0],
        [Uint8Array.of(0xed, 0xa0, 0x80), 0],
        [Uint8Array.of(0x80), 0],
      ],
    },
  );
});
