// One printer writes for all commands, and escapes what could steer a terminal.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { control, print, printOutput } from "../../../src/cli/terminal/printer.ts";
import { colorsFor, displayWidth } from "../../../src/cli/terminal/text.ts";
import { startChild } from "../../../src/core/child-process.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { ROOT } from "../built-bin.ts";
import { STEERS } from "./hostile-text.ts";

/** What reaches the terminal. */
function printed(text: string): string {
  const written: string[] = [];
  print(text, { write: (piece) => written.push(piece) });
  return written.join("");
}

const colors = colorsFor({ isTTY: true }, {});

test("nothing in a text of others steers the terminal, also inside a style of ours", () => {
  const sign = fc.constantFrom(
    "\u001b",
    "\u009b",
    "\u0007",
    "\r",
    "\u0000",
    "\u202e",
    "\u2066",
    "[31m",
    "m",
    "x",
  );
  fc.assert(
    fc.property(fc.string({ unit: fc.oneof(sign, fc.string({ unit: "binary", minLength: 1 })) }), (text) => {
      expect(printed(text)).not.toMatch(STEERS);
      const [begin = "", end = ""] = printed(colors.red("|")).split("|");
      const styled = printed(colors.red(text));
      expect([styled.startsWith(begin), styled.endsWith(end)]).toEqual([true, true]);
      expect(styled.slice(begin.length, -end.length)).not.toMatch(STEERS);
    }),
  );
});

test("styles and sequences of ours are kept, and styles take no width", () => {
  const text = colors.bold(`a ${colors.dim("b")} c`);
  expect(printed(text)).toBe("\u001b[1ma \u001b[2mb\u001b[22m\u001b[1m c\u001b[22m");
  expect(displayWidth(text)).toBe(5);
  expect(printed(`${control("\u001b[?25l\r")}\r`)).toBe("\u001b[?25l\r\\r");
  for (const none of [colorsFor({}, {}), colorsFor({ isTTY: true }, { NO_COLOR: "1" })]) {
    expect(printed(none.red("a"))).toBe("a");
  }
});

test("JSON stays the same JSON, in lines of the log too", () => {
  const value = { text: "\u001b[2J\u009b2J\u202e\u200e ü 漢字 \u007f" };
  const lines = [JSON.stringify(value), JSON.stringify(value, null, 2)];
  const log = createLogger("info", (line) => lines.push(line));
  log.info("told", value);
  for (const line of lines) {
    expect(printed(line)).not.toMatch(STEERS);
    expect(JSON.parse(printed(line))).toMatchObject(value);
  }
  expect(lines.at(-1)).not.toMatch(STEERS);
});

test("the output of a program is printed line by line while it works, and steers nothing", async () => {
  const code =
    "process.stdout.write('a\\x1b[2Jb\\n'); process.stdin.once('data', () => process.stdout.write('c\\x9bd'))";
  const child = startChild(process.execPath, ["-e", code], { stdio: ["pipe", "pipe", "pipe"] });
  const written: string[] = [];
  const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    written.push(String(text));
    // The program ends only after its first line was printed.
    child.stdin?.end("go on");
    return true;
  });
  onTestFinished(() => spy.mockRestore());
  expect(await printOutput(child)).toBe(0);
  expect(written).toEqual(["a\\u001b[2Jb\n", "c\\u009bd"]);
  const missing = startChild("no-such-program", [], { stdio: ["ignore", "pipe", "pipe"] });
  await expect(printOutput(missing)).rejects.toThrow("ENOENT");
});

test("no command writes past the printer", () => {
  const folder = join(ROOT, "src/cli");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) =>
    join("src/cli", file),
  );
  // An editor gets its protocol, and an empty text waits until all others were written.
  const allowed = [
    /^src\/cli\/terminal\/printer\.ts/,
    /^src\/cli\/acp\.ts: .*JSON\.stringify/,
    /\.write\(""/,
    // The editor of the person works in their terminal.
    /^src\/cli\/terminal\/asker\.ts: const child = startChild\(command, \[\.\.\.args, file\], \{ stdio: "inherit" \}\);$/,
  ];
  const past = [...files, "src/main.ts"]
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) =>
      readFileSync(join(ROOT, file), "utf8")
        .split("\n")
        .filter((line) => /console\.|(?:out|err|output)\.write\b|writeSync|"inherit"/i.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
  expect(past.filter((line) => !allowed.some((rule) => rule.test(line)))).toEqual([]);
  expect(past.length).toBeGreaterThan(2);
});
