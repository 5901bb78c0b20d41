import * as fc from "fast-check";
import { readFileSync } from "node:fs";
import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { describe, expect, test } from "vitest";
import { BACKENDS } from "./backends.ts";
import { foreignBackend, harness, stateBackend } from "./harness.ts";
import { attempts } from "../support/effort.ts";
import { FILES, base64 } from "../support/media-files.ts";

const PNG = FILES["image/png"];
const lines = (count: number, text = "line"): string =>
  Array.from({ length: count }, (_, index) => `${text} ${index + 1}\n`).join("");

describe.each(BACKENDS)("read_file over $name", ({ open }) => {
  test("numbers the lines of a text", async () => {
    const tools = harness(await open({ "/a.md": "one\n\n  two\n" }));
    expect(await tools.text("read_file", { file_path: "/a.md" })).toBe("1\tone\n\t\n\t  two");
    expect(await tools.text("read_file", { path: "a.md" })).toBe("1\tone\n\t\n\t  two");
  });

  test("does not show carriage returns, byte order mark or a missing final line break", async () => {
    const tools = harness(await open({ "/a.txt": "\ufeffone\r\ntwo" }));
    expect(await tools.text("read_file", { file_path: "/a.txt" })).toBe("1\tone\n\ttwo");
  });

  test("reads a page and names the next one", async () => {
    const tools = harness(await open({ "/a.md": lines(10) }));
    expect(await tools.text("read_file", { file_path: "/a.md", offset: 2, limit: 3 })).toMatch(
      /^3\tline 3\n\tline 4\n5\tline 5\n\n\[lines 3-5( of 10)?; continue with offset=5\]$/,
    );
    expect(await tools.text("read_file", { file_path: "/a.md", offset: 8, limit: 3 })).toBe(
      "9\tline 9\n10\tline 10",
    );
  });

  test("2000 lines by default", async () => {
    const tools = harness(await open({ "/a.md": lines(2001, "x") }));
    const text = await tools.text("read_file", { file_path: "/a.md" });
    expect(text).toMatch(/\n2000\tx 2000\n\n\[lines 1-2000( of 2001)?; continue with offset=2000\]$/);
    expect(await tools.text("read_file", { file_path: "/a.md", offset: 2000 })).toBe("2001\tx 2001");
  });

  test("a page ending in an empty line keeps it", async () => {
    const tools = harness(await open({ "/a.md": "a\n\nb\n" }));
    expect(await tools.text("read_file", { file_path: "/a.md", limit: 2 })).toMatch(
      /^1\ta\n\t\n\n\[lines 1-2( of 3)?; continue with offset=2\]$/,
    );
    expect(await tools.text("read_file", { file_path: "/a.md", offset: 1, limit: 1 })).toMatch(
      /^2\t\n\n\[lines 2-2( of 3)?; continue with offset=2\]$/,
    );
  });

  test("splits a line over 10,000 characters without using up the limit", async () => {
    const tools = harness(await open({ "/a.md": `${"a".repeat(10_001)}\nb\nc\n` }));
    const text = await tools.text("read_file", { file_path: "/a.md", limit: 2 });
    expect(text.split("\n").slice(0, 3)).toEqual([`1\t${"a".repeat(10_000)}`, "1.1\ta", "\tb"]);
  });

  test("a negative offset is read as 0, which the footer says", async () => {
    const tools = harness(await open({ "/a.md": "a\nb\n" }));
    expect(await tools.text("read_file", { file_path: "/a.md", offset: -5 })).toBe(
      "1\ta\n\tb\n\n[offset -5 is negative; read from offset 0]",
    );
    expect(await tools.text("read_file", { file_path: "/a.md", offset: -5, limit: 1 })).toMatch(
      /^1\ta\n\n\[offset -5 is negative; read from offset 0\]\n\[lines 1-1( of 2)?; continue with offset=1\]$/,
    );
  });

  test("an empty file is told apart from a missing one and from blanks", async () => {
    const tools = harness(await open({ "/empty": "", "/blank": " \n" }));
    const empty = await tools.call("read_file", { file_path: "/empty" });
    expect(empty.content).toBe("System reminder: File exists but has empty contents");
    expect(empty.status ?? "success").toBe("success");
    expect(await tools.text("read_file", { file_path: "/blank" })).toBe("1\t ");
  });

  test.each([
    ["/nope", {}, "File '/nope' not found", "not_found"],
    ["/dir", {}, "'/dir' is a directory", "is_directory"],
    ["/dir/", {}, "'/dir' is a directory", "is_directory"],
    ["/a.md", { offset: 2 }, "Line offset 2 exceeds file length (2 lines)", "out_of_range"],
    ["/kana", {}, "File '/kana' is not text in UTF-8 or another known encoding", "encoding"],
    ["/n\new", {}, "File '/n\\new' not found", "not_found"],
    [
      "/data.bin",
      {},
      "File '/data.bin' is binary (application/octet-stream, 3 bytes) and cannot be shown as text",
      "binary",
    ],
  ])("%j with %j fails", async (path, more, text, code) => {
    const tools = harness(
      await open({
        "/a.md": "a\nb\n",
        "/dir/x": "1",
        "/kana": Uint8Array.from([0x83, 0x01, 0x83, 0x02, 0x83, 0x03, 0x0a]),
        "/data.bin": Uint8Array.from([1, 0, 2]),
      }),
    );
    expect(await tools.call("read_file", { file_path: path, ...more })).toEqual({
      content: `Error: ${text}`,
      status: "error",
      artifact: { code },
    });
  });

  const KEPT = "edit_file and write_file keep it]";
  const GUESS =
    "its encoding is a guess, so it cannot be edited. If it reads right, convert it with a command first:";

  test.each([
    [
      "jlcodes99/vscode-antigravity-cockpit#89",
      "O\xe7\xe3o n\xe3o \xe9 \xe1gua\r\nb\r\n",
      `1\tOção não é água\n\tb\n\n[encoding WINDOWS-1252; ${KEPT}`,
    ],
    [
      "FMXExpress/PasClaw#467",
      "\x93caf\xe9\x94 \x96 10 \x80\n",
      `1\t“café” – 10 €\n\n[File '/a.php' was read as WINDOWS-1252, but ${GUESS} iconv -f WINDOWS-1252 -t UTF-8. Otherwise ask for its encoding.]`,
    ],
    ["openclaw/openclaw#92664", "\xd6\xd0\xce\xc4\xb2\xe2\n", `1\t中文测\n\n[encoding GB18030; ${KEPT}`],
    ["KOI8-R", "\xf0\xd2\xc9\xd7\xc5\xd4\n", `1\tПривет\n\n[encoding KOI8-R; ${KEPT}`],
    ["UTF-16", "\xff\xfea\0\n\0", `1\ta\n\n[encoding UTF-16LE; ${KEPT}`],
    [
      "a character cut in two",
      "한글\n한글".replaceAll(/./gs, (one) => Buffer.from(one).toString("latin1")).slice(0, -1),
      "1\t한글\n\t한\ufffd\n\n[File '/a.php' was read as UTF-8, but some of its bytes are not UTF-8, so it cannot be edited. Repair these bytes with a command, or ask which encoding they have.]",
    ],
  ])("%s: a text in an older encoding is shown, and said to be in it", async (_source, bytes, shown) => {
    const tools = harness(await open({ "/a.php": Uint8Array.from(Buffer.from(bytes, "latin1")) }));
    expect(await tools.text("read_file", { file_path: "/a.php" })).toBe(shown);
  });

  test("an image is a content block", async () => {
    const tools = harness(await open({ "/pic.png": PNG }));
    const { content, status = "success" } = await tools.call("read_file", { file_path: "/pic.png" });
    expect(status).toBe("success");
    expect(content).toEqual([
      { type: "image", mimeType: "image/png", data: Buffer.from(PNG).toString("base64") },
    ]);
  });

  test("PDF, audio and video are content blocks; a PDF has a name", async () => {
    const pdf = FILES["application/pdf"];
    const [mp3, mp4] = [FILES["audio/mpeg"], FILES["video/mp4"]];
    const tools = harness(await open({ "/d/a.pdf": pdf, "/a.mp3": mp3, "/a.mp4": mp4 }));
    const block = async (path: string) => (await tools.call("read_file", { file_path: path })).content;
    expect(await block("/d/a.pdf")).toEqual([
      { type: "file", mimeType: "application/pdf", data: base64(pdf), metadata: { filename: "a.pdf" } },
    ]);
    expect(await block("/a.mp3")).toEqual([{ type: "audio", mimeType: "audio/mpeg", data: base64(mp3) }]);
    expect(await block("/a.mp4")).toEqual([{ type: "video", mimeType: "video/mp4", data: base64(mp4) }]);
  });

  test("media have the type of their bytes, whatever their name", async () => {
    const jpeg = FILES["image/jpeg"];
    const tools = harness(
      await open({ "/shot.png": jpeg, "/shot": jpeg, "/shot.txt": jpeg, "/shot.pdf": jpeg }),
    );
    for (const path of ["/shot.png", "/shot", "/shot.txt", "/shot.pdf"]) {
      const { content } = await tools.call("read_file", { file_path: path });
      expect(content).toEqual([{ type: "image", mimeType: "image/jpeg", data: base64(jpeg) }]);
    }
  });

  test("an SVG, and a text with the name of a picture, are read as text", async () => {
    const pointer = "version https://git-lfs.github.com/spec/v1\nsize 12345\n";
    const tools = harness(await open({ "/a.svg": "<svg/>\n", "/logo.png": Buffer.from(pointer) }));
    expect(await tools.text("read_file", { file_path: "/a.svg" })).toBe("1\t<svg/>");
    expect(await tools.text("read_file", { file_path: "/logo.png" })).toBe(
      "1\tversion https://git-lfs.github.com/spec/v1\n\tsize 12345",
    );
    expect(await tools.text("read_file", { file_path: "/logo.png", offset: 1 })).toBe("2\tsize 12345");
  });

  test("media the model does not take, and broken ones, are an error that says what to do", async () => {
    const cut = PNG.subarray(0, 40);
    const backend = await open({
      "/pic.png": PNG,
      "/pic.tiff": FILES["image/tiff"],
      "/cut.png": cut,
      "/none.png": new Uint8Array(),
    });
    const none = harness(backend, { acceptsMedia: () => false });
    expect(await none.text("read_file", { file_path: "/pic.png" })).toBe(
      "Error: File '/pic.png' (image/png, 3 × 2 px, 57 bytes) cannot be shown. The model does not accept images. Extract what you need as text, with a command if you can run one, and read that.",
    );
    const some = harness(backend);
    expect(await some.text("read_file", { file_path: "/pic.tiff" })).toBe(
      "Error: File '/pic.tiff' (image/tiff, 8 bytes) cannot be shown. The model does not accept this format. Convert it to PNG, with a command if you can run one, and read that.",
    );
    expect(await some.text("read_file", { file_path: "/cut.png" })).toBe(
      "Error: File '/cut.png' (image/png, 3 × 2 px, 40 bytes) cannot be shown. It cannot be read: it is cut off, its end is missing. Create it or fetch it again.",
    );
    expect(await some.call("read_file", { file_path: "/none.png" })).toMatchObject({
      content:
        "Error: File '/none.png' (image/png, 0 bytes) cannot be shown. It cannot be read: it is empty (0 bytes). Create it or fetch it again.",
      status: "error",
    });
  });

  test("a binary file over 10 MiB is refused", async () => {
    const tools = harness(await open({ "/big.png": new Uint8Array(11 * 1024 * 1024) }));
    expect(await tools.text("read_file", { file_path: "/big.png" })).toBe(
      "Error: file too large to read (11MB exceeds 10MB limit for binary files)",
    );
  });

  test("output is capped at the eviction size, on a line end, and goes on from there", async () => {
    const tools = harness(await open({ "/a.md": lines(3000, "x".repeat(90)) }));
    const first = await tools.text("read_file", { file_path: "/a.md", limit: 3000 });
    expect(first.length).toBeLessThanOrEqual(80_000);
    const [, end] = /\n\n\[lines 1-(\d+)(?: of 3000)?; continue with offset=\1\]$/.exec(first) ?? [];
    expect(Number(end)).toBeGreaterThan(700);
    const second = await tools.text("read_file", { file_path: "/a.md", offset: Number(end) });
    expect(second.startsWith(`${Number(end) + 1}\t`)).toBe(true);
  });

  test("any file, read page by page, gives every line once", async () => {
    const line = fc.string({ unit: fc.constantFrom("a", " ", "é", "😀", "\t", "\r", "$&"), maxLength: 30 });
    const long = fc.tuple(line, fc.integer({ min: 1, max: 200 })).map(([part, times]) => part.repeat(times));
    const text = fc.tuple(
      fc.array(fc.oneof(line, long), { minLength: 1, maxLength: 40 }),
      fc.constantFrom("\n", "\r\n"),
    );
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.boolean(),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 200, max: 500 }),
        fc.integer({ min: 2, max: 200 }),
        async ([source, lineEnd], terminated, limit, evictTokens, maxLineChars) => {
          const content = source.join(lineEnd) + (terminated ? lineEnd : "");
          fc.pre(content !== "");
          const tools = harness(await open({ "/f.txt": content }), { evictTokens, maxLineChars });
          expect(await readAll(tools, limit)).toEqual(expectedLines(content));
        },
      ),
      attempts(60),
    );
  });
});

/** Every line, put together from the pages a model would ask for. */
async function readAll(tools: ReturnType<typeof harness>, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (
    let place: { offset: number; piece: number } | undefined = { offset: 0, piece: 0 };
    place !== undefined;
  ) {
    const text = await tools.text("read_file", { file_path: "/f.txt", ...place, limit });
    const [footer, offset, next] =
      /\n\n\[lines? [^\]]*; continue with offset=(\d+)(?: piece=(\d+)[^\]]*)?\]$/.exec(text) ?? [];
    const body = footer === undefined ? text : text.slice(0, -footer.length);
    for (const row of body.split("\n")) {
      const [, number, piece, rest] = /^(\d*)(\.\d+)?\t(.*)$/s.exec(row) ?? [];
      if (number === undefined) throw new Error(`not a line of a page: ${JSON.stringify(row)}`);
      const index = number === "" ? found.length : Number(number) - 1;
      expect(index).toBe(piece === undefined ? found.length : found.length - 1);
      found[index] = piece === undefined ? (rest ?? "") : `${found[index]}${rest}`;
    }
    place = offset === undefined ? undefined : { offset: Number(offset), piece: Number(next ?? 0) };
    expect(place === undefined || place.offset === found.length - (next === undefined ? 0 : 1)).toBe(true);
  }
  return found;
}

function expectedLines(content: string): string[] {
  const all = content.split("\n");
  if (all.at(-1) === "") all.pop();
  return all.map((line) => line.replace(/\r$/, ""));
}

describe("read_file", () => {
  test("numbers take at most 12 % of the tokens of code, at high numbers and in short lines too", async () => {
    const encoding = new Tiktoken(o200k);
    const sources = ["../../src/tools/read-file.ts", "../../config.schema.json", "../../README.md"];
    const texts = sources.map((name) => readFileSync(new URL(name, import.meta.url), "utf8"));
    const braces = "  {\n    id: 1,\n    ok: true,\n  },\n".repeat(500);
    for (const text of [...texts, braces]) {
      const shown = await harness(stateBackend({ "/a.ts": text })).text("read_file", { file_path: "/a.ts" });
      const [own, all] = [text.trimEnd(), shown].map((each) => encoding.encode(each, [], []).length);
      expect(own! / all!).toBeGreaterThan(0.88);
    }
  });

  test("asks a backend for no more lines than can be shown", async () => {
    const asked: (number | undefined)[] = [];
    const backend = foreignBackend({
      read: (_path, _offset, limit) => {
        asked.push(limit);
        return { content: "x\n", totalLines: 1 };
      },
    });
    await harness(backend).call("read_file", { file_path: "/a", limit: 1_000_000_000 });
    await harness(backend, { evictTokens: null }).call("read_file", {
      file_path: "/a",
      limit: 1_000_000_000,
    });
    expect(asked).toEqual([40_001, 1_000_000_000]);
  });

  test("without the length of the file, a full page may have a next one", async () => {
    const backend = foreignBackend({ read: () => ({ content: "a\nb" }) });
    expect(await harness(backend).text("read_file", { file_path: "/a", offset: 3, limit: 2 })).toBe(
      "4\ta\n5\tb\n\n[lines 4-5; continue with offset=5]",
    );
    expect(await harness(backend).text("read_file", { file_path: "/a", limit: 3 })).toBe("1\ta\n\tb");
  });

  test("half surrogate pairs of a stored text are replaced", async () => {
    const backend = foreignBackend({ read: () => ({ content: "a\ud83d\n", totalLines: 1 }) });
    expect(await harness(backend).text("read_file", { file_path: "/a" })).toBe("1\ta\ufffd");
  });

  test("a very long line is read piece by piece", async () => {
    const text = Array.from({ length: 300_000 }, (_, index) => index % 10).join("");
    const tools = harness(stateBackend({ "/a.json": text }));
    const first = await tools.call("read_file", { file_path: "/a.json" });
    expect(first).toMatchObject({
      content: expect.stringMatching(
        /\[line 1 has 300000 characters in 30 pieces; continue with offset=0 piece=7, or find text in it with grep\]$/,
      ),
      artifact: { nextOffset: 0, nextPiece: 7 },
    });
    const last = await tools.text("read_file", { file_path: "/a.json", piece: 29 });
    expect(last).toBe(`1.29\t${text.slice(290_000)}`);
  });

  test("the artifact tells programs where the page lies", async () => {
    const tools = harness(stateBackend({ "/a.md": lines(10) }));
    expect((await tools.call("read_file", { file_path: "/a.md", offset: 2, limit: 3 })).artifact).toEqual({
      path: "/a.md",
      version: expect.any(String),
      startLine: 2,
      endLine: 5,
      totalLines: 10,
      nextOffset: 5,
    });
  });
});
