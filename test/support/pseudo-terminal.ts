import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import headless from "@xterm/headless";
import { onTestFinished } from "vitest";

/** A program in a terminal of its own, as a person sees it. Tests that open one have the tag `python3`. */
export interface PseudoTerminal {
  /** The lines on the screen, without blanks at their ends and without empty ones at the end. */
  screen(): string[];
  /** The same with all that has scrolled away. */
  everything(): string[];
  /** Waits until the screen, as one text, matches; gives the text. */
  until(pattern: RegExp): Promise<string>;
  type(keys: string): void;
  resize(columns: number, rows: number): Promise<void>;
  /** Closes the terminal while the program works in it. */
  hangUp(): Promise<void>;
  /** All bytes that were written. */
  output(): string;
  /** How often the bell rang. */
  bells(): number;
  /** The exit code, after all output was read; a signal as a negative number. */
  readonly exited: Promise<number>;
  readonly pid: Promise<number>;
}

export interface PseudoTerminalOptions {
  columns: number;
  rows?: number;
  cwd: string;
  env: NodeJS.ProcessEnv;
}

/** After this the screen is said not to match. */
const PATIENCE_MS = 60_000;

const PROGRAM = fileURLToPath(new URL("./pseudo-terminal.py", import.meta.url));

export function openTerminal(
  command: readonly string[],
  { columns, rows = 24, cwd, env }: PseudoTerminalOptions,
): PseudoTerminal {
  const child: ChildProcess = spawn("python3", [PROGRAM, `${columns} ${rows}`, ...command], {
    cwd,
    env: { ...env, TERM: "xterm-256color" },
    stdio: ["pipe", "pipe", "inherit", "pipe", "pipe"],
  });
  const terminal = new headless.Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true });
  let output = "";
  let bells = 0;
  let parsed = Promise.resolve();
  terminal.onBell(() => (bells += 1));
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString("latin1");
    parsed = new Promise((resolve) => terminal.write(chunk, resolve));
  });
  const pid = once(child.stdio[4] as NodeJS.ReadableStream, "data").then(([chunk]) => Number(String(chunk)));
  const exited = once(child, "close").then(async ([code]) => {
    await parsed;
    return Number(code);
  });
  onTestFinished(async () => {
    // The program ends with its terminal.
    child.kill("SIGKILL");
    await exited;
    terminal.dispose();
  });
  const lines = (from: number): string[] => {
    const buffer = terminal.buffer.active;
    const all = Array.from(
      { length: buffer.length - from },
      (_, row) => buffer.getLine(from + row)?.translateToString(true) ?? "",
    );
    return all.slice(0, all.findLastIndex((line) => line !== "") + 1);
  };
  const screen = (): string[] => lines(terminal.buffer.active.baseY);
  return {
    screen,
    everything: () => lines(0),
    until: async (pattern) => {
      for (const end = Date.now() + PATIENCE_MS; ;) {
        const text = screen().join("\n");
        if (pattern.test(text)) return text;
        const isOver = await Promise.race([exited.then(() => true), delay(20, false)]);
        if ((isOver && !pattern.test(screen().join("\n"))) || Date.now() > end) {
          throw new Error(`The screen never matched ${pattern}:\n${screen().join("\n")}`);
        }
      }
    },
    type: (keys) => void child.stdin?.write(keys),
    resize: async (columns, rows) => {
      const control = child.stdio[3] as Writable;
      control.write(`${columns} ${rows}\n`);
      // What was drawn for the old size arrives before the size changes.
      await delay(100);
      await parsed;
      terminal.resize(columns, rows);
      control.write("\n");
    },
    hangUp: async () => {
      child.kill("SIGKILL");
      await exited;
    },
    output: () => Buffer.from(output, "latin1").toString(),
    bells: () => bells,
    exited,
    pid,
  };
}
