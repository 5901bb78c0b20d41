/** Reads keys, lines and texts from a person at the terminal of this process. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { setTimeout as delay } from "node:timers/promises";
import { startChild } from "../../core/child-process.ts";
import type { Keyboard } from "./keyboard.ts";
import { control, print, printable } from "./printer.ts";
import { type Colors, columnsOf, displayWidth, withBlanks, wrapText } from "./text.ts";

/** Terminal functions that asking needs. */
export interface Asker {
  /**
   * Shows `prompt` until a key is pressed, and returns the key. Rejects at the end of the input, when the person
   * interrupts, or with the reason of `signal`. `isNew`: ignore keys typed before the prompt appeared.
   */
  key(prompt: string, isNew: boolean, signal?: AbortSignal): Promise<string>;
  /** One line of input; rejects as `key` does. */
  line(prompt: string, signal?: AbortSignal): Promise<string>;
  /** A line that is typed or pasted and never shown; rejects as `key` does. */
  secret(prompt: string): Promise<string>;
  print(text: string): void;
  /** Lets the person edit a text; `undefined` when that failed. */
  edit(text: string, fileName: string): Promise<string | undefined>;
  size(): { columns: number; rows: number };
  colors: Colors;
}

/** Keys that were typed into the terminal earlier arrive within this time. */
const DRAIN_MS = 100;
const INTERRUPTS = new Set(["\u0003", "\u0004"]);

/** Asks on the terminal of this process. Ctrl-C and Ctrl-D at a question call `interrupted`. */
export function terminalAsker(colors: Colors, keyboard: Keyboard, interrupted: () => void): Asker {
  const { stdout } = process;
  const told = async (ask: () => Promise<string>, signal?: AbortSignal): Promise<string> => {
    try {
      return await ask();
    } catch (error) {
      if (signal?.aborted !== true) interrupted();
      throw error;
    }
  };
  return {
    colors,
    print: (text) => print(`${text}\n`),
    size: () => ({ columns: columnsOf(stdout), rows: stdout.rows || 24 }),
    edit: (text, fileName) => keyboard.free(() => editInEditor(text, fileName)),
    key: async (prompt, isNew, signal) => {
      const key = await keyPressed(keyboard, prompt, isNew, signal);
      if (!INTERRUPTS.has(key)) return key;
      interrupted();
      throw new Error("interrupted");
    },
    line: (prompt, signal) => told(() => keyboard.free(() => lineTyped(prompt, signal)), signal),
    secret: (prompt) => told(() => secretTyped(keyboard, prompt)),
  };
}

/** Returns Ctrl-D at the end of the input. */
async function keyPressed(keyboard: Keyboard, prompt: string, isNew: boolean, signal?: AbortSignal) {
  const { stdout } = process;
  let take = (_key: string): void => {};
  let giveUp = (): void => {};
  let shown: string[] = [];
  const show = (): void => {
    shown = withBlanks(wrapText(prompt, columnsOf(stdout) - 1));
    print(shown.join("\n"));
  };
  const giveBack = keyboard.take({
    key: (keys) => {
      if (keys.length === 1) take(keys);
    },
    interrupt: () => take("\u0003"),
    end: () => take("\u0004"),
    stopping: () => print("\n"),
    continued: show,
  });
  try {
    if (isNew) await delay(DRAIN_MS);
    show();
    const key = await new Promise<string | undefined>((resolve) => {
      take = resolve;
      giveUp = () => resolve(undefined);
      if (signal?.aborted) giveUp();
      else signal?.addEventListener("abort", giveUp, { once: true });
    });
    const heights = shown.map((line) => Math.max(Math.ceil(displayWidth(line) / columnsOf(stdout)), 1));
    const rows = heights.reduce((sum, height) => sum + height, 0);
    print(control(`${rows > 1 ? `\u001b[${rows - 1}A` : ""}\r\u001b[J`));
    if (key === undefined) throw signal?.reason;
    return key;
  } finally {
    signal?.removeEventListener("abort", giveUp);
    giveBack();
  }
}

/** Rejects at Ctrl-C and Ctrl-D. */
async function secretTyped(keyboard: Keyboard, prompt: string): Promise<string> {
  print(prompt);
  let giveBack = (): void => {};
  try {
    return await new Promise<string>((resolve, reject) => {
      const interrupted = (): void => reject(new Error("interrupted"));
      let line = "";
      const key = (keys: string): void => {
        // Arrows and other keys are not characters.
        if (keys.startsWith("\u001b")) return;
        for (const character of keys) {
          if (/[\r\n]/.test(character)) return resolve(line);
          if (INTERRUPTS.has(character)) return interrupted();
          if (character === "\u0015") line = "";
          else if (/[\u007f\b]/.test(character)) line = line.slice(0, -1);
          else line += character;
        }
      };
      const continued = (): void => print(prompt);
      giveBack = keyboard.take({ key, interrupt: interrupted, end: interrupted, continued });
    });
  } finally {
    giveBack();
    print("\n");
  }
}

/** Reads a line. Rejects at Ctrl-C, at Ctrl-D and with `signal`. Ignores keys typed before the prompt appeared. */
export async function lineTyped(prompt: string, signal?: AbortSignal): Promise<string> {
  const { stdin, stdout } = process;
  const forget = (): void => {};
  stdin.on("data", forget);
  stdin.setRawMode(true);
  await delay(DRAIN_MS);
  stdin.off("data", forget);
  stdin.setRawMode(false);
  const lines = createInterface({ input: stdin, output: stdout });
  const stop = new AbortController();
  lines.once("SIGINT", () => stop.abort());
  lines.once("close", () => stop.abort());
  try {
    const given = AbortSignal.any([stop.signal, ...(signal === undefined ? [] : [signal])]);
    return await lines.question(printable(prompt), { signal: given });
  } finally {
    if (signal?.aborted) print("\n");
    lines.close();
  }
}

/** The program with which a person edits a text, and its first arguments. */
export function editorOf(
  env: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
): [command: string, ...args: string[]] {
  const editor = env["VISUAL"] ?? env["EDITOR"] ?? "";
  const [command, ...args] = editor.split(" ").filter((part) => part !== "");
  return command === undefined ? [platform === "win32" ? "notepad" : "vi"] : [command, ...args];
}

async function editInEditor(text: string, fileName: string): Promise<string | undefined> {
  const [command, ...args] = editorOf(process.env, process.platform);
  const folder = await mkdtemp(join(tmpdir(), "deepagent-edit-"));
  const file = join(folder, fileName);
  try {
    await writeFile(file, text, { mode: 0o600 });
    const code = await new Promise<number | null>((resolve) => {
      const child = startChild(command, [...args, file], { stdio: "inherit" });
      child.once("error", () => resolve(null));
      child.once("exit", resolve);
    });
    if (code === 0) return await readFile(file, "utf8");
    print(`The editor "${command}" failed; set EDITOR to one that is installed.\n`);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
