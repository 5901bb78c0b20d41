import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { startChild } from "../../core/child-process.ts";
import type { Asker } from "./approval.ts";
import type { Colors } from "../colors.ts";

/** Asks on the terminal of this process. `interrupted` is called for Ctrl-C and Ctrl-D at a question. */
export function terminalAsker(colors: Colors, interrupted: () => void): Asker {
  return {
    colors,
    print: (text) => void process.stdout.write(`${text}\n`),
    rows: () => process.stdout.rows,
    edit: editInEditor,
    question: async (prompt) => {
      const lines = createInterface({ input: process.stdin, output: process.stdout });
      const stop = new AbortController();
      const end = (): void => {
        interrupted();
        stop.abort();
      };
      lines.once("SIGINT", end);
      lines.once("close", () => stop.abort());
      try {
        return await lines.question(prompt, { signal: stop.signal });
      } catch (error) {
        interrupted();
        throw error;
      } finally {
        lines.close();
      }
    },
  };
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
