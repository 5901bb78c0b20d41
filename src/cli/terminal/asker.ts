/** A person at the terminal of this process: keys, lines and texts that they give. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { setTimeout as delay } from "node:timers/promises";
import { startChild } from "../../core/child-process.ts";
import { type Colors, columnsOf, displayWidth, wrapText } from "./text.ts";

/** Terminal functions that asking needs. */
export interface Asker {
  /**
   * Shows `prompt` until a key is pressed, and gives the key; rejects when there is no more input, or the person
   * interrupts, or with the reason of `signal`. `isNew`: forget what was typed before the prompt was there.
   */
  key(prompt: string, isNew: boolean, signal?: AbortSignal): Promise<string>;
  /** One line of input; rejects as `key` does. */
  line(prompt: string): Promise<string>;
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
export function terminalAsker(colors: Colors, interrupted: () => void): Asker {
  const { stdout } = process;
  return {
    colors,
    print: (text) => void stdout.write(`${text}\n`),
    size: () => ({ columns: columnsOf(stdout), rows: stdout.rows || 24 }),
    edit: editInEditor,
    key: async (prompt, isNew, signal) => {
      const key = await keyPressed(prompt, isNew, signal);
      if (!INTERRUPTS.has(key)) return key;
      interrupted();
      throw new Error("interrupted");
    },
    line: async (prompt) => {
      try {
        return await lineTyped(prompt);
      } catch (error) {
        interrupted();
        throw error;
      }
    },
  };
}

/** Gives Ctrl-D at the end of the input. */
async function keyPressed(prompt: string, isNew: boolean, signal?: AbortSignal): Promise<string> {
  const { stdin, stdout } = process;
  let take = (_key: string): void => {};
  // A key of several characters is an arrow or a text that was pasted: no answer.
  const read = (chunk: Buffer): void => {
    const text = chunk.toString();
    if (text.length === 1) take(text);
  };
  const end = (): void => take("\u0004");
  stdin.on("data", read).on("end", end);
  stdin.setRawMode(true);
  stdin.resume();
  try {
    if (isNew) await delay(DRAIN_MS);
    const columns = columnsOf(stdout);
    const shown = wrapText(prompt, columns - 1);
    stdout.write(shown.join("\n"));
    const key = await new Promise<string | undefined>((resolve) => {
      take = resolve;
      if (signal?.aborted) resolve(undefined);
      else signal?.addEventListener("abort", () => resolve(undefined), { once: true });
    });
    const rows = shown.reduce(
      (sum, line) => sum + Math.max(Math.ceil(displayWidth(line) / columnsOf(stdout)), 1),
      0,
    );
    stdout.write(`${rows > 1 ? `\u001b[${rows - 1}A` : ""}\r\u001b[J`);
    if (key === undefined) throw signal?.reason;
    return key;
  } finally {
    stdin.off("data", read).off("end", end);
    stdin.setRawMode(false);
    stdin.pause();
  }
}

/** Rejects at Ctrl-C and Ctrl-D. Forgets what was typed before the prompt was there. */
export async function lineTyped(prompt: string): Promise<string> {
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
    return await lines.question(prompt, { signal: stop.signal });
  } finally {
    lines.close();
  }
}

async function editInEditor(text: string, fileName: string): Promise<string | undefined> {
  const fallback = process.platform === "win32" ? "notepad" : "vi";
  const editor = process.env["VISUAL"] ?? process.env["EDITOR"] ?? fallback;
  const [command = fallback, ...args] = editor.split(" ").filter((part) => part !== "");
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
    process.stdout.write(`The editor "${command}" failed; set EDITOR to one that is installed.\n`);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
