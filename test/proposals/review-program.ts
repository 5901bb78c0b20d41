/** Processes that apply a proposed change, and can be stopped in the middle of it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { filesIn } from "../support/files-in.ts";

/** `review-process.ts` as one file. */
export function reviewProgram(): string {
  const folder = filesIn();
  const outfile = join(folder, "process.mjs");
  const entryPoints = [fileURLToPath(new URL("./review-process.ts", import.meta.url))];
  // Packages are CommonJS in part, and look for `require`.
  const banner = {
    js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
  };
  buildSync({
    mainFields: ["module", "main"],
    entryPoints,
    outfile,
    banner,
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
  });
  return outfile;
}

/** Starts the program of a process that applies everything, and tells what it says. */
export function startReview(program: string, home: string, threadId: string, ...args: readonly string[]) {
  writeFileSync(join(home, "fence"), "first");
  const child = spawn(
    process.execPath,
    [program, join(home, "copies"), threadId, join(home, "fence"), ...args],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let text = "";
  child.stdout.on("data", (bytes: Buffer) => (text += bytes.toString()));
  const ended = once(child, "close");
  /** Waits until it has said a word, or has ended. */
  const says = async (word: string): Promise<boolean> => {
    while (!text.includes(word) && child.exitCode === null && child.signalCode === null)
      await Promise.race([once(child.stdout, "data"), ended]);
    return text.includes(word);
  };
  return { child, says, ended, text: () => text };
}
