import * as fc from "fast-check";
import { expect, test } from "vitest";
import { describeMedia, mediaFacts, mediaProblem } from "../../src/core/media.ts";
import { attempts } from "../support/effort.ts";
import { FILES, WEBP, gif, jpeg, png } from "../support/media-files.ts";

const everything = { accepts: () => true };

test.each(Object.entries(FILES))("%s is known by its bytes, and is whole", (type, bytes) => {
  const facts = mediaFacts(bytes, "image/png");
  expect(facts).toMatchObject({ mimeType: type, size: bytes.length });
  expect(facts.damage).toBeUndefined();
  if (type.startsWith("image/") && !/tiff|svg/.test(type)) expect(facts.sides).toEqual([3, 2]);
});

test.each(Object.entries(WEBP))("a %s WebP tells its size", (_kind, bytes) =>
  expect(mediaFacts(bytes)).toMatchObject({ mimeType: "image/webp", sides: [3, 2], damage: undefined }),
);

test("a container for sound or film is what it is said to be", () => {
  expect(mediaFacts(FILES["video/mp4"], "audio/mp4").mimeType).toBe("audio/mp4");
  expect(mediaFacts(FILES["video/webm"], "audio/webm").mimeType).toBe("audio/webm");
  expect(mediaFacts(FILES["audio/ogg"], "video/ogg").mimeType).toBe("video/ogg");
  expect(mediaFacts(FILES["video/mp4"], "audio/mpeg").mimeType).toBe("video/mp4");
});

test.each<[string, Uint8Array]>([
  ["a text", Buffer.from("version https://git-lfs.github.com/spec/v1\n")],
  ["a page", Buffer.from("<!doctype html><html><svg></svg></html>")],
  ["a text in UTF-16", Buffer.from("\ufeffBM is not a picture", "utf16le")],
  ["a word like the beginning of a bitmap", Buffer.from("BMW builds cars, and has done so for a while.")],
  ["the half of a mark", FILES["image/png"].subarray(0, 6)],
])("%s is no media", (_what, bytes) => expect(mediaFacts(bytes).mimeType).toBeUndefined());

test.each<[string, Uint8Array, string]>([
  ["nothing", new Uint8Array(), "it is empty (0 bytes)"],
  ["a PNG without its end", FILES["image/png"].subarray(0, 40), "it is cut off, its end is missing"],
  ["a JPEG whose thumbnail alone has an end", jpeg(3, 2, ""), "it is cut off, its end is missing"],
  [
    "a JPEG that ends before its picture",
    FILES["image/jpeg"].subarray(0, 12),
    "it is cut off, its end is missing",
  ],
  ["a GIF without its end", gif(3, 2, 1, ""), "it is cut off, its end is missing"],
  [
    "a WebP that is shorter than it says",
    FILES["image/webp"].subarray(0, 28),
    "it is cut off, its end is missing",
  ],
  ["a PDF without its end", FILES["application/pdf"].subarray(0, 30), "it is cut off, its end is missing"],
  ["a PNG without width", png(0, 2), "its header says 0 × 2 pixels"],
  ["a PNG of absurd height", png(1, 2_000_000_000), "its header says 1 × 2000000000 pixels"],
  ["a PNG of absurd size", png(60_000, 60_000), "its header says 60000 × 60000 pixels"],
])("%s is damaged", (_what, bytes, damage) => {
  const facts = mediaFacts(bytes);
  expect(facts.damage).toBe(damage);
  expect(mediaProblem(facts, everything)).toBe(`It cannot be read: ${damage}. Create it or fetch it again.`);
});

test("whatever follows the end of a picture does no harm", () => {
  for (const type of ["image/png", "image/jpeg", "image/gif", "application/pdf"] as const) {
    const longer = Buffer.concat([FILES[type], Buffer.from("\0\0trailer")]);
    expect(mediaFacts(longer)).toMatchObject({ mimeType: type, damage: undefined });
  }
});

test.each<[string, Uint8Array, Parameters<typeof mediaProblem>[1], RegExp | undefined]>([
  [
    "a format",
    FILES["image/bmp"],
    { accepts: (type) => type === "image/png" },
    /this format\. Convert it to PNG/,
  ],
  ["images", FILES["image/png"], { accepts: () => false }, /does not accept images\. Extract/],
  ["audio", FILES["audio/wav"], { accepts: () => false }, /does not accept audio\. Extract/],
  ["an animation", gif(3, 2, 2), { ...everything, frames: 1 }, /animated GIF/],
  ["no animation", gif(3, 2, 1), { ...everything, frames: 1 }, undefined],
  ["a large image", png(3, 2), { ...everything, image: 75 }, /up to 0\.0 MB\. Make it smaller/],
  ["an image that just fits", png(3, 2), { ...everything, image: 76 }, undefined],
  [
    "a wide image",
    png(2001, 2),
    { ...everything, side: 2000 },
    /at most 2000 pixels per side here\. Make it smaller/,
  ],
  ["an image as wide as it may be", png(2000, 2), { ...everything, side: 2000 }, undefined],
  ["pages", FILES["application/pdf"], { ...everything, pages: 0 }, /takes 0 pages, not 1\. Split it/],
  ["a page", FILES["application/pdf"], { ...everything, pages: 1, image: 0 }, undefined],
])("limits: %s", (_what, bytes, limits, problem) => {
  const said = mediaProblem(mediaFacts(bytes), limits);
  if (problem === undefined) expect(said).toBeUndefined();
  else expect(said).toMatch(problem);
});

test("media are described in a few words", () => {
  expect(describeMedia(mediaFacts(png(640, 480)), "x")).toBe("image/png, 640 × 480 px, 57 bytes");
  expect(describeMedia({ mimeType: undefined, size: 5000 }, "image/png")).toBe("image/png, 5 kB");
  expect(describeMedia({ mimeType: "video/mp4", size: 5_000_000 }, "")).toBe("video/mp4, 4.8 MB");
});

test("any bytes are read without an error, and in time that grows with their length", () => {
  const beginning = fc.constantFrom(...Object.values(FILES).map((bytes) => Buffer.from(bytes)));
  const noise = fc.uint8Array({ maxLength: 200 });
  fc.assert(
    fc.property(beginning, fc.nat(60), noise, (bytes, at, more) => {
      const { size } = mediaFacts(Buffer.concat([bytes.subarray(0, at), more]));
      expect(size).toBeLessThanOrEqual(at + 200);
    }),
    attempts(300),
  );
  for (const bytes of Object.values(FILES)) mediaFacts(Buffer.concat([bytes, Buffer.alloc(5_000_000, 0x21)]));
});
