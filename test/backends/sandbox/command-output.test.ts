import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CommandOutput } from "../../../src/backends/sandbox/command-output.ts";
import { terminalText } from "../../../src/backends/terminal-screen.ts";

function outputOf(limit: number, ...writes: [stream: "stdout" | "stderr", text: string][]): CommandOutput {
  const output = new CommandOutput(limit);
  for (const [stream, text] of writes) output.add(stream, Buffer.from(text));
  output.finish();
  return output;
}

describe("CommandOutput", () => {
  it("marks each line of standard error, in the order of arrival", () => {
    const output = outputOf(1000, ["stdout", "one\n"], ["stderr", "bad\nworse\n"], ["stdout", "two\n"]);
    expect(output.text()).toBe("one\n[stderr] bad\n[stderr] worse\ntwo\n");
    expect(output.truncated).toBe(false);
  });

  it("keeps lines whole when both streams write at once", () => {
    const output = outputOf(1000, ["stdout", "on"], ["stderr", "ba"], ["stdout", "e\ntw"], ["stderr", "d\n"]);
    expect(output.text()).toBe("one\n[stderr] bad\ntw");
  });

  it("puts an unfinished line of standard error on a line of its own", () => {
    expect(outputOf(1000, ["stderr", "bad"], ["stdout", "prompt> "]).text()).toBe("prompt> \n[stderr] bad");
  });

  it("shows an unfinished line before it has ended", () => {
    const output = new CommandOutput(1000);
    output.add("stdout", Buffer.from("a\n50%"));
    expect(output.text()).toBe("a\n50%");
  });

  it("tells what it keeps, as it comes, and nothing else", () => {
    const chunks: string[] = [];
    const output = new CommandOutput(8, (chunk) => chunks.push(chunk));
    output.add("stdout", Buffer.from("abc\nd"));
    expect(chunks).toEqual(["abc\n"]);
    output.add("stdout", Buffer.from("efghijk\n"));
    output.add("stderr", Buffer.from("more\n"));
    output.finish();
    expect(chunks.join("")).toBe("abc\ndefg");
    expect(output.text()).toBe("abc\ndefg");
  });

  it("cuts at the limit, never inside a character", () => {
    expect(outputOf(4, ["stdout", "ab🎉"]).text()).toBe("ab");
    expect(outputOf(6, ["stdout", "ab🎉"])).toMatchObject({ truncated: false });
    expect(outputOf(3, ["stdout", "äöü\n"]).text()).toBe("ä");
  });

  it("is text of at most the limit, whatever is written and in whatever pieces", () => {
    // Controls are the subject of the screen; its tests have them.
    const plain = fc
      .string({ unit: "binary", maxLength: 30 })
      .map((text) => text.replace(/(?![\t\n])\p{Cc}/gu, "."));
    const write = fc.tuple(fc.constantFrom("stdout", "stderr"), plain);
    fc.assert(
      fc.property(fc.array(write, { maxLength: 20 }), fc.nat(100), fc.nat(5), (writes, limit, size) => {
        const output = new CommandOutput(limit);
        let standard = "";
        for (const [stream, text] of writes) {
          if (stream === "stdout") standard += text;
          const bytes = Buffer.from(text);
          for (let at = 0; at < bytes.length; at += size + 1)
            output.add(stream, bytes.subarray(at, at + size + 1));
        }
        output.finish();
        const text = output.text();
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(limit);
        const hasErrors = writes.some(([stream]) => stream === "stderr");
        if (!hasErrors) {
          expect(standard.startsWith(text)).toBe(true);
          expect(output.truncated).toBe(text !== standard);
        }
      }),
    );
  });

  it("has what a terminal shows, in whatever pieces it comes", () => {
    const part = fc.constantFrom("a", "bc", "é🎉", "\n", "\r", "\b", "\t", "\x1b[K", "\x1b[2K", "\x1b[1K", "\x1b[2A", "\x1b[B", "\x1b[3G", "\x1b[2;3H", "\x1b[J", "\x1b[2J", "\x1b[31m", "\x1b]0;t\x07", "\x1b[?1049h", "\x1b[?1049l", "\x1b7", "\x1b8"); // prettier-ignore
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), fc.integer({ min: 1, max: 7 }), (parts, size) => {
        const text = parts.join("");
        const output = new CommandOutput(100_000);
        const bytes = Buffer.from(text);
        for (let at = 0; at < bytes.length; at += size) output.add("stdout", bytes.subarray(at, at + size));
        output.finish();
        expect(output.text()).toBe(terminalText(text));
        expect(terminalText(output.text())).toBe(output.text());
      }),
    );
  });

  it("draws over the lines of each stream by itself", () => {
    const output = outputOf(
      1000,
      ["stdout", "1 of 2\n1 of 3\n"],
      ["stderr", "\x1b[33mslow\x1b[0m\n10%\r20%\r"],
      ["stdout", "\x1b[2A2 of 2\n3 of 3\n"],
      ["stderr", "100%\n"],
    );
    expect(output.text()).toBe("2 of 2\n3 of 3\n[stderr] slow\n[stderr] 100%\n");
  });

  it("has room for the last frame of more frames than it could hold", () => {
    const output = new CommandOutput(100);
    for (let count = 1; count <= 10_000; count += 1) output.add("stdout", Buffer.from(`\r${count} of 10000`));
    output.add("stdout", Buffer.from("\ndone\n"));
    output.finish();
    expect(output.text()).toBe("10000 of 10000\ndone\n");
    expect(output.truncated).toBe(false);
  });
});
