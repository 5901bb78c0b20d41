import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errors } from "../../src/backends/errors.ts";
import { editText, keepForm } from "../../src/backends/text-edit.ts";

const edited = (text: string, oldString: string, newString: string, replaceAll?: boolean): string => {
  const result = editText(text, oldString, newString, replaceAll);
  return result.ok ? result.text : `error: ${result.error}`;
};

describe("editText", () => {
  it.each([
    ["plain", "a b c", "b", "x", "a x c"],
    ["over lines", "a\nb\nc\n", "b\nc", "x", "a\nx\n"],
    ["to nothing", "abc", "b", "", "ac"],
    ["LF text in a CRLF file", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"],
    ["one line in a CRLF file, by several", "a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"],
    ["CRLF text in a CRLF file", "a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"],
    ["CRLF text in a LF file", "a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"],
    ["a line end alone in a CRLF file", "a\r\nb", "a\n", "x\n", "x\r\nb"],
    ["line ends, when they are named", "a\r\nb\r\n", "\r\nb", "\nb", "a\nb\r\n"],
    ["mixed line ends, mostly LF", "a\r\nb\nc\nd\n", "a\nb\n", "x\ny\n", "x\ny\nc\nd\n"],
    ["mixed line ends, mostly CRLF", "a\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"],
    ["no final newline", "a\nb", "b", "c", "a\nc"],
    ["behind a byte order mark", "\ufeffa b", "a", "x", "\ufeffx b"],
    ["text read with its byte order mark", "\ufeffa b", "\ufeffa", "\ufeffx", "\ufeffx b"],
    ["patterns of replacements", "a", "a", "$& $1 $$ $` \\1", "$& $1 $$ $` \\1"],
    ["patterns of expressions", "a.c abc", "a.c", "x", "x abc"],
    ["an emoji", "a 🎉 b", "🎉", "🎊", "a 🎊 b"],
  ])("replaces %s", (_case, text, oldString, newString, expected) => {
    expect(edited(text, oldString, newString)).toBe(expected);
  });

  it("counts matches that do not overlap", () => {
    expect(editText("aaaa", "aa", "b", true)).toEqual({ ok: true, text: "bb", occurrences: 2 });
    expect(editText("aaa", "aa", "b", true)).toEqual({ ok: true, text: "ba", occurrences: 1 });
    expect(editText("a\r\na\r\na\r\n", "a\n", "b\n", true)).toMatchObject({
      text: "b\r\nb\r\nb\r\n",
      occurrences: 3,
    });
  });

  it("does not read replaced text again", () => {
    expect(edited("ab", "ab", "abab", true)).toBe("abab");
    expect(edited("aab", "a", "aa", true)).toBe("aaaab");
  });

  it("says why it changed nothing", () => {
    expect(editText("abc", "x", "y")).toEqual({ ok: false, ...errors.stringNotFound("x") });
    expect(editText("aa", "a", "b")).toEqual({ ok: false, ...errors.stringAmbiguous("a", 2) });
    expect(editText("a", "a", "a")).toEqual({ ok: false, ...errors.identicalStrings() });
    expect(editText("a\nb", "a\r\nb", "a\nb")).toEqual({ ok: false, ...errors.identicalStrings() });
    expect(editText("a", "", "b")).toEqual({ ok: false, ...errors.emptyOldString() });
    expect(editText("", "", "")).toEqual({ ok: false, ...errors.identicalStrings() });
    expect(editText("", "a", "b")).toEqual({ ok: false, ...errors.stringNotFound("a") });
  });

  it("sets the content of an empty file, its byte order mark kept", () => {
    expect(edited("", "", "text\n")).toBe("text\n");
    expect(edited("\ufeff", "", "text")).toBe("\ufefftext");
  });

  it("never takes a character apart", () => {
    expect(editText("a🎉b", "\ud83c", "x")).toMatchObject({ ok: false, code: "no_match" });
    expect(editText("a🎉b", "\udf89b", "x")).toMatchObject({ ok: false, code: "no_match" });
  });

  it("replaces at most so many occurrences, and says what to do about more", () => {
    const result = editText("\n".repeat(200_000), "\n", "x", true);
    expect(result).toMatchObject({ ok: false, code: "ambiguous" });
    expect(result).toMatchObject({
      error: expect.stringContaining("appears more than 100000 times in file. Add"),
    });
    expect(editText("\n".repeat(100_000), "\n", "x", true)).toMatchObject({ ok: true, occurrences: 100_000 });
  });

  it("goes by the line ends at the beginning of a long file", () => {
    const file = `${"a\r\n".repeat(30_000)}b\nc\n`;
    expect(edited(file, "b\nc", "b\nd\nc")).toBe(file.replace("b\nc", "b\r\nd\r\nc"));
  });

  it("shortens a long string in its message", () => {
    const result = editText("a", "x".repeat(500), "y");
    expect(result).toMatchObject({ error: `String not found in file: '${"x".repeat(200)}…'` });
  });
});

const word = fc.string({ unit: fc.constantFrom("a", "b", "\n", "$", "\\", "🎉"), maxLength: 12 });

describe("keepForm", () => {
  const MARK = "\ufeff";
  it.each([
    ["LF text over CRLF", "a\r\nb\r\n", "x\ny", "x\r\ny", ["CRLF line ends"]],
    ["CRLF text over LF", "a\nb\n", "x\r\ny\r\n", "x\ny\n", ["LF line ends"]],
    ["the same line ends", "a\r\nb\r\n", "x\r\ny\r\n", "x\r\ny\r\n", []],
    ["text with both kinds", "a\r\nb\r\n", "x\r\ny\nz\n", "x\r\ny\nz\n", []],
    ["text over both kinds, mostly CRLF", "a\r\nb\nc\r\n", "x\ny\n", "x\r\ny\r\n", ["CRLF line ends"]],
    ["text over one line without an end", "a", "x\r\ny\r\n", "x\r\ny\r\n", []],
    ["text over nothing", "", "x\r\n", "x\r\n", []],
    ["one line over CRLF", "a\r\n", "x", "x", []],
    ["text over a marked one", `${MARK}a`, "x", `${MARK}x`, ["byte order mark"]],
    ["marked text over a marked one", `${MARK}a`, `${MARK}x`, `${MARK}x`, []],
    ["marked text over a plain one", "a", `${MARK}x`, `${MARK}x`, []],
    ["both", `${MARK}a\r\n`, "x\n", `${MARK}x\r\n`, ["CRLF line ends", "byte order mark"]],
    ["a carriage return that ends no line", "a\r\nb\r\n", "x\ry\n", "x\ry\r\n", ["CRLF line ends"]],
  ])("%s", (_name, old, given, text, kept) => {
    expect(keepForm(old, given)).toEqual({ text, kept });
  });
});

describe("editText, for any text", () => {
  /** The text, what is replaced in it, and by what. */
  const edits = [word, word.filter((text) => text !== ""), word] as const;

  it("with LF lines does what splitting and joining does", () => {
    fc.assert(
      fc.property(...edits, (text, oldString, newString) => {
        fc.pre(oldString !== newString);
        const pieces = text.split(oldString);
        const result = editText(text, oldString, newString, true);
        if (pieces.length === 1) expect(result).toMatchObject({ ok: false, code: "no_match" });
        else
          expect(result).toEqual({
            ok: true,
            text: pieces.join(newString),
            occurrences: pieces.length - 1,
          });
      }),
    );
  });

  it("with CRLF lines does the same, and leaves no other line end", () => {
    fc.assert(
      fc.property(...edits, (text, oldString, newString) => {
        const crlf = text.replaceAll("\n", "\r\n");
        const inLf = editText(text, oldString, newString, true);
        const inCrlf = editText(crlf, oldString, newString, true);
        expect(inCrlf.ok).toBe(inLf.ok);
        if (!inLf.ok || !inCrlf.ok || !text.includes("\n")) return;
        expect(inCrlf).toEqual({ ...inLf, text: inLf.text.replaceAll("\n", "\r\n") });
      }),
    );
  });
});
