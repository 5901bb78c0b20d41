import { describe, expect, it } from "vitest";
import { terminalText } from "../../src/backends/terminal-screen.ts";

describe("terminalText", () => {
  it.each<[string, string, string]>([
    ["plain lines", "a\n\tb\n\nc", "a\n\tb\n\nc"],
    ["line ends of Windows", "a\r\nb\r\n", "a\nb\n"],
    ["frames of a progress bar", "\r 1%\r50%\r100% \ndone\n", "100% \ndone\n"],
    ["a shorter frame, which leaves the end of a longer one", "12345\r67", "67345"],
    ["a frame that erases the one before", "downloading\r\x1b[Kok\n", "ok\n"],
    ["a frame that is erased before it is left", "10%\r\x1b[2K", ""],
    ["spinners", "|\b/\b-\b\\\bok\n", "ok\n"],
    ["colours", "\x1b[1;38;5;196mred\x1b[0m \x1b[4:3mwavy\x1b[m", "red wavy"],
    ["titles and links", "\x1b]0;title\x07a \x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\\n", "a link\n"],
    ["a string that does not end, up to the end of its line", "a\x1b]0;title\nb\n", "a\nb\n"],
    ["several lines that are drawn anew", "a 1\nb 1\n\x1b[2Aa 2\x1b[K\nb 2\x1b[K\n", "a 2\nb 2\n"],
    ["lines that are erased", "a\nb\nc\n\x1b[2A\x1b[Jd\n", "a\nd\n"],
    ["a cleared screen", "old\nolder\n\x1b[2J\x1b[Hnew\n", "new\n"],
    ["frames of a screen", "\x1b[H1\n2\n\x1b[H\x1b[J3\n", "3\n"],
    ["columns", "a\x1b[5Gb\x1b[2Dc\x1b[Cd", "a  cbd"],
    ["saved places", "\x1b7wait\x1b8\x1b[Kok\n", "ok\n"],
    ["a program on the full screen", "a\n\x1b[?1049h\x1b[2J\x1b[Htop\x1b[?1049lb\n", "a\nb\n"],
    ["characters beyond the basic plane", "🎉🎉\rab\n", "ab\n"],
    ["other controls", "a\0\x07\x1b(B\x1b=b\x7f\n", "ab\n"],
    ["a sequence that is none", "a\x1b[12\u00e9b", "aéb"],
    ["a sequence without an end", "a\x1b[31", "a"],
  ])("shows %s as a terminal does", (_what, output, shown) => {
    expect(terminalText(output)).toBe(shown);
  });

  it("says that a program was on the full screen when it ended", () => {
    expect(terminalText("a\n\x1b[?1049htop")).toBe(
      "a\n[A full-screen program drew the rest, which is not shown]",
    );
  });

  it("does not draw over lines that have left the screen, nor over very long ones", () => {
    const lines = Array.from({ length: 100 }, (_, at) => `${at}\n`).join("");
    expect(terminalText(`${lines}\x1b[999Ax`).split("\n").slice(0, 40)).toEqual(
      lines.split("\n").slice(0, 40),
    );
    const long = "x".repeat(2000);
    expect(terminalText(`${long}\ry`)).toBe(`${long}\ny`);
  });
});
