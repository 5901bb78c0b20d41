import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

/** `migrate-process.ts` as one file in `folder`. */
export function bundleProcess(folder: string): string {
  const bundle = join(folder, "process.mjs");
  // The native module is found in the repository.
  symlinkSync(join(import.meta.dirname, "../../node_modules"), join(folder, "node_modules"));
  buildSync({
    entryPoints: [fileURLToPath(new URL("./migrate-process.ts", import.meta.url))],
    outfile: bundle,
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["better-sqlite3"],
  });
  return bundle;
}

/** A process that is ready to migrate `file`. */
export async function startProcess(
  bundle: string,
  file: string,
  versions: number,
  { killedIn }: { killedIn?: number } = {},
): Promise<ChildProcess> {
  const env = { ...process.env, ...(killedIn === undefined ? {} : { KILLED_IN_STEP: `${killedIn}` }) };
  const child = fork(bundle, [file, `${versions}`], { env });
  await once(child, "message");
  return child;
}

/** Lets it migrate; gives its exit code, `null` when it was killed. */
export async function finish(child: ChildProcess): Promise<unknown> {
  const exit = once(child, "exit");
  child.send("go");
  const [code] = await exit;
  return code;
}
