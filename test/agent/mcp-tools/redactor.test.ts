import { growth } from "../../support/work.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Redactor } from "../../../src/agent/mcp-tools/redactor.ts";
import { attempts } from "../../support/effort.ts";
import { png } from "../../support/media-files.ts";

const base64 = (text: string, encoding: "base64" | "base64url" = "base64"): string =>
  Buffer.from(text).toString(encoding);
const html = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;").replaceAll("'", "&#39;");
const codeOf = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, "0");

/** Encodings in which servers repeat a value. */
const ENCODINGS: Readonly<Record<string, (text: string) => string>> = {
  "as it is": (text) => text,
  JSON: (text) => JSON.stringify(text),
  "JSON in JSON": (text) => JSON.stringify(JSON.stringify({ text })),
  "JSON with slashes escaped": (text) => JSON.stringify(text).replaceAll("/", "\\/"),
  "JSON in ASCII": (text) => JSON.stringify(text).replace(/[^\x20-\x7e]/g, (one) => `\\u${codeOf(one)}`),
  "JSON all escaped": (text) =>
    text
      .split("")
      .map((one) => `\\u${codeOf(one)}`)
      .join(""),
  "part of an address": encodeURIComponent,
  "address of JSON": (text) => encodeURIComponent(JSON.stringify(text)),
  "address, all escaped, small letters": (text) => Buffer.from(text).toString("hex").replace(/../g, "%$&"),
  form: (text) => new URLSearchParams({ text }).toString(),
  HTML: html,
  "HTML in JSON": (text) => JSON.stringify(html(text)),
  "HTML by numbers": (text) =>
    text
      .split("")
      .map((one) => `&#x${codeOf(one)};`)
      .join(""),
  base64,
  "base64 at the second place": (text) => base64(`x${text}`),
  "base64 at the third place": (text) => base64(`xy${text}z`),
  "base64 in lines": (text) => base64(text).replace(/.{5}/g, "$&\r\n"),
  "base64 in lines in JSON": (text) => JSON.stringify(base64(text).replace(/.{5}/g, "$&\n")),
  base64url: (text) => base64(`x${text}y`, "base64url"),
  "base64 in an address": (text) => encodeURIComponent(base64(text)),
  "base64 of UTF-16": (text) => Buffer.from(text, "utf16le").toString("base64"),
  "hexadecimal digits": (text) => Buffer.from(text).toString("hex"),
  "hexadecimal digits in capitals": (text) => Buffer.from(text).toString("hex").toUpperCase(),
};

/** Anything that a header or a variable may hold. */
const secret = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom(...Array.from("aZ09/+=-_%&\\\"'<>: é€")),
      fc.string({ minLength: 1, maxLength: 1 }),
    ),
    minLength: 8,
    maxLength: 60,
  })
  .filter((text) => text.trim().length === text.length && new Set(text).size > 4);

test.each(Object.entries(ENCODINGS))("a secret that holds an escape is hidden in %s", (_name, encode) => {
  const shown = new Redactor(['%Aa éa "']).text(`key: ${encode('%Aa éa "')}; next`);
  expect(shown).toMatch(/^key: .*\[hidden\].*; next$/s);
});

describe.each(Object.entries(ENCODINGS))("a secret in %s", (_name, encode) => {
  test("is hidden, and the text around it stays", () => {
    fc.assert(
      fc.property(secret, (text) => {
        const shown = new Redactor([text]).text(`key: ${encode(text)}; next`);
        expect(shown).toMatch(/^key: .*\[hidden\].*; next$/s);
        // Letters of base64 beside it belong to its neighbours, too.
        expect(shown.replace("[hidden]", "").length).toBeLessThan("key: ; next".length + 20);
      }),
      attempts(100),
    );
  });
});

test("the parts of a header and of an address count, too", () => {
  const login = base64("bob:pass-1234");
  const redactor = new Redactor([`Basic ${login}`, "Bearer tok-1234", "postgres://bob:p%40ss-567@host/db"]);
  for (const part of [login, "bob:pass-1234", "pass-1234", "tok-1234", "p%40ss-567", "p@ss-567"])
    expect(redactor.text(`<${part}>\n`)).toBe("<[hidden]>\n");
});

test("values of JSON are redacted in names, texts and numbers, and nothing else changes", () => {
  const redactor = new Redactor(["12345678", "abcdefgh"]);
  const value = { "x abcdefgh": [12_345_678, 7, null, true, { deep: "\tabcdefgh\n" }], same: "abcdef gh" };
  expect(redactor.value(value)).toEqual({
    "x [hidden]": ["[hidden]", 7, null, true, { deep: "\t[hidden]\n" }],
    same: "abcdef gh",
  });
});

test("media stay as they are, unless a secret is among their bytes", () => {
  const image = Buffer.from(png(4, 4));
  const data = image.toString("base64");
  // Letters of its base64 are no secret, though a secret has the same ones.
  const redactor = new Redactor([data.slice(20, 28), "abcdefgh"]);
  expect(redactor.value({ type: "image", data })).toEqual({ type: "image", data });
  const marked = Buffer.concat([image, Buffer.from("abcdefgh")]).toString("base64");
  const shown = Buffer.concat([image, Buffer.from("[hidden]")]).toString("base64");
  expect(redactor.value({ data: marked })).toEqual({ data: shown });
  expect(redactor.value({ blob: "abcdefgh" })).toEqual({ blob: "[hidden]" });
});

test("secrets that are added are hidden, and short ones are words", () => {
  const redactor = new Redactor(["12345"]);
  redactor.add("token-one", undefined, "token-two");
  expect(redactor.text("12345 token-one token-two token-onetoken-two")).toBe(
    "12345 [hidden] [hidden] [hidden]",
  );
});

test.each([
  ["ordinary text", ["secret-1"], "some words and secret-1, "],
  [
    "text that begins like many tokens",
    Array.from({ length: 30 }, (_, at) => `eyJhbGciOiJIUzI1NiJ9.${at}`),
    "eyJhbGciOiJIUzI1NiJ9.",
  ],
  ["text that is almost the secret everywhere", [`${"a".repeat(500)}b${"a".repeat(500)}`], "aaaaaaaa"],
  ["text that is the secret everywhere", ["secret-1"], "secret-1"],
  ["text of escapes", ["secret-1"], "%25\\\\&amp;\n"],
  ["text of unfinished escapes", ["secret-1"], "%&\\&#&#x"],
] as const)("%s takes linear time", async (_name, secrets, text) => {
  const redactor = new Redactor(secrets);
  const grown = await growth(2000, (size) => redactor.text(text.repeat(size)));
  expect(grown).toBeGreaterThan(2);
  expect(grown).toBeLessThan(6);
});
