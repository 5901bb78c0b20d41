/** Files that a script writes from the sources. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Writes the file; with --check, only fails when it says something else. */
export async function writeGenerated(name, text) {
  const target = join(ROOT, name);
  if (!process.argv.includes("--check")) {
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
  } else if ((await readFile(target, "utf8").catch(() => "")) !== text) {
    console.error(`${name} is stale. Run: node scripts/${basename(process.argv[1])}`);
    process.exitCode = 1;
  }
}
