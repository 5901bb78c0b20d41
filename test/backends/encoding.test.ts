/**
 * Texts of programs in older encodings. The texts are messages of zod in many languages: as a file of a program, and
 * as single lines of comment.
 */
import fs, { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type TextEncoding, encodeText, findUnencodable, readFileText } from "../../src/backends/encoding.ts";
import OLDER_ENCODINGS from "../../src/backends/older-encodings.json" with { type: "json" };
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { attempts } from "../support/effort.ts";
import { filesIn } from "../support/files-in.ts";

const require = createRequire(import.meta.url);
const locales = join(dirname(require.resolve("zod")), "v4/locales");
const messages = (language: string): string => readFileSync(join(locales, `${language}.js`), "utf8");

/** Encoding, language of the long text, a short text, and the source of the report or standard. */
const ROWS: [TextEncoding, language: string, sample: string, source: string][] = [
  ["cp949", "ko", "// 사용자 목록을 불러온다\n", "anthropics/claude-code#62723"],
  ["cp932", "ja", "// ユーザー一覧を読み込む\n", "anthropics/claude-code#62723"],
  ["euc-jp", "ja", "// ユーザー一覧を読み込む\n", "QwenLM/qwen-code#2073"],
  ["iso-2022-jp", "ja", "// ユーザー一覧を読み込む\n", "RFC 1468"],
  ["gb18030", "zh-CN", "// 读取用户列表\n", "anthropics/claude-code#56946"],
  ["big5-hkscs", "zh-TW", "// 讀取使用者清單\n", "WHATWG Encoding Standard"],
  ["windows-1251", "ru", "// Загрузка списка пользователей\n", "anomalyco/opencode#37602"],
  ["koi8-r", "ru", "// Загрузка списка пользователей\n", "RFC 1489"],
  ["windows-1252", "de", "// Größe des Käfigs prüfen\n", "anthropics/claude-code#9019"],
  ["windows-1250", "cs", "// Načte seznam všech uživatelů\n", "Microsoft code page 1250"],
  [
    "iso-8859-2",
    "hu",
    "// Betölti a felhasználók listáját, és kiírja a nevüket meg a címüket\n",
    "ISO/IEC 8859-2",
  ],
  ["windows-1253", "el", "// Φορτώνει τη λίστα των χρηστών\n", "Microsoft code page 1253"],
  [
    "windows-1254",
    "tr",
    "// Kullanıcı listesini yükler; boşsa hata mesajı gösterir, değişiklikleri ağ üzerinden gönderir ve çıkış yapar\n",
    "Microsoft code page 1254",
  ],
  ["windows-1255", "he", "// טוען את רשימת המשתמשים\n", "Microsoft code page 1255"],
  ["windows-1256", "ar", "// تحميل قائمة المستخدمين\n", "Microsoft code page 1256"],
  ["cp874", "th", "// โหลดรายชื่อผู้ใช้\n", "Microsoft code page 874"],
  ["utf-16le", "ko", "// 사용자 목록을 불러온다: load all users\n", "without a mark"],
  ["utf-16be", "ja", "// ユーザー: load all users of the list\n", "without a mark"],
];

/** A text as far as an encoding has its characters. */
const within = (text: string, encoding: TextEncoding): string =>
  Array.from(text)
    .filter((character) => findUnencodable(character, encoding) === undefined)
    .join("");

describe.each(ROWS)("%s, %s", (encoding, language, sample) => {
  const code = "int load() { return 0; }\n";
  const long = within(messages(language), encoding);
  let folder: string;
  let backend: FilesystemBackend;
  beforeEach(() => {
    folder = filesIn();
    backend = new FilesystemBackend({ rootDir: folder, virtualMode: true });
  });
  const put = (text: string): Buffer => {
    const bytes = encodeText(text, encoding);
    writeFileSync(join(folder, "a.c"), bytes);
    return bytes;
  };

  it("is detected in a short text and in a long one", () => {
    for (const text of [sample + code, code + sample + code, long])
      expect(readFileText(encodeText(text, encoding))?.text).toBe(text);
    const found = readFileText(encodeText(long, encoding));
    expect(found?.doubt).toBeUndefined();
    expect(readFileText(encodeText(sample, encoding))?.doubt).toBeUndefined();
  });

  it("stays when a text is edited, and other bytes stay as they are", async () => {
    put(sample + code);
    expect(await backend.read("/a.c")).toMatchObject({ content: sample + code });
    const word = Array.from(sample.slice(3).trim()).slice(0, 4).join("");
    await backend.edit("/a.c", "return 0", `return 1 /* ${word} */`);
    const edited = sample + code.replace("0", `1 /* ${word} */`);
    expect(readFileSync(join(folder, "a.c"))).toEqual(encodeText(edited, encoding));
  });

  it.runIf(encoding in OLDER_ENCODINGS)(
    "refuses a character that it does not have, and names it",
    async () => {
      const bytes = put(sample + code);
      const missing =
        ["가", "Я", "ß", "ا"].find((one) => findUnencodable(one, encoding) !== undefined) ?? "😀";
      if (encoding === "gb18030") return; // It has all of Unicode.
      const { error, code: reason } = await backend.edit("/a.c", "return", missing);
      expect([reason, error]).toEqual(["encoding", expect.stringContaining(`'${missing}' (U+`)]);
      expect(readFileSync(join(folder, "a.c"))).toEqual(bytes);
    },
  );

  it.runIf(encoding in OLDER_ENCODINGS)("is searched with ripgrep as without", async () => {
    put(code + sample + code);
    const word =
      sample
        .slice(3)
        .trim()
        .split(/[\s:,]/)[0] ?? "";
    const expected = { matches: [{ path: "/a.c", line: 2, text: sample.trim() }] };
    const without = new FilesystemBackend({ rootDir: folder, virtualMode: true, ripgrep: false });
    for (const each of [backend, without]) {
      // Above this number of matches the search begins with ripgrep.
      expect(await each.grep(word, "/", null, 1000)).toMatchObject(expected);
      const expression = `${Array.from(word)[0]}.*${Array.from(word).at(-1)}`;
      expect(await each.grep(expression, "/", null, 1000, { regex: true })).toMatchObject(expected);
      expect(await each.grep("LOAD()", "/", null, 1000, { caseSensitive: false })).toMatchObject({
        matches: [{ line: 1 }, { line: 3 }],
      });
    }
  });
});

const OLDER = Object.keys(OLDER_ENCODINGS) as (keyof typeof OLDER_ENCODINGS)[]; // the keys of the table

describe("an encoding", () => {
  it.each(OLDER)("%s has ASCII in its place", (encoding) => {
    const ascii = String.fromCharCode(...Array.from({ length: 0x7f }, (_, code) => code));
    // oxlint-disable-next-line no-control-regex -- it matches control characters
    const text = encoding === "iso-2022-jp" ? ascii.replace(/[\x0e\x0f\x1b]/g, "") : ascii;
    expect(encodeText(text, encoding).toString("latin1")).toBe(text);
  });

  it("that a file declares is used", () => {
    for (const [head, encoding] of [
      ["# -*- coding: euc-kr -*-\n", "cp949"],
      ['<?xml version="1.0" encoding="Shift_JIS"?>\n', "cp932"],
      ['<meta charset="iso-8859-2">\n', "iso-8859-2"],
      ["scriptencoding cp1251\n", "windows-1251"],
    ] as const) {
      const text = `${head}x = "${within("가日čЯ", encoding)}"\n`;
      expect(readFileText(encodeText(text, encoding))).toEqual({ text, encoding });
    }
  });
});

describe("an edit", () => {
  it("changes the bytes of the edited text only", async () => {
    const folder = filesIn();
    const backend = new FilesystemBackend({ rootDir: folder, virtualMode: true });
    const rows = ROWS.filter(([encoding]) => encoding in OLDER_ENCODINGS);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...rows),
        fc.array(fc.string({ unit: fc.constantFrom("a", "\\", "~", "|", " ", "{", "@") }), { maxLength: 6 }),
        fc.constantFrom("\n", "\r\n"),
        fc.nat(),
        async ([encoding, , sample], words, end, place) => {
          const line = sample.trim();
          const lines = [line, ...words.map((word, index) => word + (index % 2 === 0 ? line : "")), line];
          const at = place % (lines.length + 1);
          const [head, tail] = [lines.slice(0, at), lines.slice(at)].map((part) =>
            part.map((one) => one + end).join(""),
          );
          writeFileSync(join(folder, "b.txt"), encodeText(`${head}MARK${end}${tail}`, encoding));
          const { error } = await backend.edit("/b.txt", "MARK", `${line}\\`);
          expect(error).toBeUndefined();
          expect(readFileSync(join(folder, "b.txt"))).toEqual(
            Buffer.concat(
              [head ?? "", `${line}\\${end}`, tail ?? ""].map((part) => encodeText(part, encoding)),
            ),
          );
        },
      ),
      attempts(40),
    );
  });
});

describe("bytes that are not one text", () => {
  const korean = encodeText("// 사용자 목록을 불러온다\n", "cp949");

  it.each<[string, Buffer]>([
    ["a file cut inside a character", korean.subarray(0, korean.indexOf(0x0a) - 1)],
    ["UTF-8 cut inside a character", Buffer.from("// 사용자 목록을").subarray(0, -1)],
    ["ASCII cut inside its only other character", Buffer.from("int main() {} // prüfe ß").subarray(0, -1)],
    ["ASCII and a part of a character", Buffer.from("// load all users of the list ü").subarray(0, -1)],
    [
      "UTF-8 that begins inside a character",
      Buffer.from("용자 목록을 불러온다, load all of a list\n").subarray(1),
    ],
    ["ASCII that begins inside a character", Buffer.from("é, load all users of the list\n").subarray(1)],
    ["lines in two encodings", Buffer.concat([Buffer.from("// 사용자 목록을\n// 불러온다\n"), korean])],
    ["a single letter of no language", Buffer.from([0x61, 0x20, 0xb8, 0x20, 0xb2, 0x0a])],
  ])("%s: shown, and not written", async (_name, bytes) => {
    const folder = filesIn();
    const backend = new FilesystemBackend({ rootDir: folder, virtualMode: true });
    writeFileSync(join(folder, "a.c"), bytes);
    const { content, doubt } = await backend.read("/a.c");
    expect([typeof content, typeof doubt]).toEqual(["string", "string"]);
    expect(await backend.edit("/a.c", "a", "b")).toMatchObject({ code: "encoding" });
    expect(readFileSync(join(folder, "a.c"))).toEqual(bytes);
  });

  it.each<[string, Buffer]>([
    ["NUL in a legacy text", Buffer.concat([korean, Buffer.from([0]), korean])],
    [
      "compressed bytes",
      Buffer.from("789c4bcbcf57282d4e2d5248c94c54c8cc5348cb2fcacc4b5748ca49cc4b5701009d0f09c1", "hex"),
    ],
    ["numbers of two bytes", Buffer.from(Uint16Array.from({ length: 64 }, (_, index) => index).buffer)],
    ["UTF-16 with half of a pair", Buffer.from("abcdefgh\ud800 abcdefgh", "utf16le")],
  ])("%s: binary", (_name, bytes) => {
    expect(readFileText(bytes)).toBeUndefined();
  });
});

describe("a large file", () => {
  it("is paged in its encoding, and not edited", async () => {
    const folder = filesIn();
    const line = encodeText(`${"x".repeat(200)} 사용자 목록을 불러온다\n`, "cp949");
    const file = join(folder, "big.txt");
    const piece = Buffer.concat(Array<Buffer>(10_000).fill(line));
    for (let size = 0; size < 11 * 1024 * 1024; size += piece.length) appendFileSync(file, piece);
    const backend = new FilesystemBackend({ rootDir: folder, virtualMode: true });
    const page = await backend.read("/big.txt", 40_000, 1);
    expect(page).toMatchObject({
      encoding: "cp949",
      content: expect.stringMatching(/^x+ 사용자 목록을 불러온다\n$/),
    });
    expect((await backend.edit("/big.txt", "x", "y")).code).toBe("too_large");
  });
});

describe("a text in UTF-8", () => {
  afterEach(() => vi.resetModules());

  it("is read once, without the libraries", async () => {
    const folder = filesIn();
    writeFileSync(join(folder, "a.c"), "// größer\nint main() {}\n");
    const reads: number[] = [];
    const { read, readSync } = fs;
    const count = (): number => reads.push(1);
    const counted = (...args: Parameters<typeof read>): void => {
      count();
      read(...args);
    };
    Object.defineProperties(counted, Object.getOwnPropertyDescriptors(read));
    try {
      Object.assign(fs, {
        read: counted,
        readSync: (...args: Parameters<typeof readSync>) => (count(), readSync(...args)),
      });
      syncBuiltinESMExports();
      vi.resetModules();
      const fresh = await import("../../src/backends/filesystem/filesystem.ts");
      const backend = new fresh.FilesystemBackend({ rootDir: folder, virtualMode: true, ripgrep: false });
      for (const name of ["iconv-lite", "jschardet"]) delete require.cache[require.resolve(name)];
      const readsOf = async (run: () => Promise<unknown>): Promise<number> => {
        reads.length = 0;
        await run();
        return reads.length;
      };
      // The beginning, the page, and the end of the file.
      expect(await readsOf(async () => backend.read("/a.c"))).toBe(3);
      expect(await readsOf(async () => backend.grep("main"))).toBe(1);
      expect(await readsOf(async () => backend.edit("/a.c", "main", "start"))).toBe(2);
      const loaded = ["iconv-lite", "jschardet"].filter((name) => require.resolve(name) in require.cache);
      expect(loaded).toEqual([]);
    } finally {
      Object.assign(fs, { read, readSync });
      syncBuiltinESMExports();
    }
  });
});
