import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { parsedUrl } from "../../src/core/unknown.ts";

test.each([
  ["https://bücher.example/é", true],
  ["https://한국.example/", true],
  ["mailto:a@b.example", true],
  ["example.com", false],
  ["https://", false],
  ["", false],
])("%j is a URL: %s, also when the function is compiled", (text, is) => {
  for (let call = 0; call < 50_000; call += 1) parsedUrl(`https://example.com/${call % 7}`);
  expect(parsedUrl(text) !== undefined).toBe(is);
});

test("no source asks Node, whose answer changes once it is compiled", () => {
  const folder = new URL("../../src/", import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const asking = files.filter(
    (file) => file.endsWith(".ts") && readFileSync(new URL(file, folder), "utf8").includes("URL.canParse("),
  );
  expect(asking).toEqual([]);
});
