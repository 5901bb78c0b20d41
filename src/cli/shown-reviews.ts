/** Remembers in the data folder which proposed changes this terminal has shown: only those are applied. */
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { parsedJson } from "../core/unknown.ts";
import { type ProposedChange, digestOf, versionsOf } from "../runs/proposals.ts";
import type { LocalRuns } from "./local-runs.ts";

const Versions = z.record(z.string(), z.string());
const Shown = z.object({
  run: z.string(),
  digest: z.string(),
  /** Versions of its files, by path. */
  versions: Versions,
  /** Those of files that were shown to their end by themselves. */
  read: Versions,
});
export type Shown = z.output<typeof Shown>;

const FILE = "shown-reviews.json";

/** The newest first. A file that cannot be read is none. */
export async function shownReviews({ config }: LocalRuns): Promise<Shown[]> {
  const text = await readFile(join(config.dataDir, FILE), "utf8").catch(() => "");
  return z.array(Shown).safeParse(parsedJson(text)).data ?? [];
}

/** Notes that a change was shown: all of it, or some of its files to their end. */
export async function noteShown(
  local: LocalRuns,
  run: string,
  change: ProposedChange,
  paths?: readonly string[],
): Promise<void> {
  const all = await shownReviews(local);
  const before = all.find((one) => one.run === run);
  const versions = versionsOf(change.files);
  const read = Object.fromEntries((paths ?? []).map((path) => [path, versions[path] ?? ""]));
  const shown = {
    run,
    ...(paths === undefined
      ? { digest: digestOf(change), versions }
      : { digest: "", versions: {}, ...before }),
    read: { ...before?.read, ...read },
  };
  const file = join(local.config.dataDir, FILE);
  const next = JSON.stringify([shown, ...all.filter((one) => one !== before)].slice(0, 50));
  await writeFile(`${file}.${process.pid}`, next, { mode: 0o600 });
  await rename(`${file}.${process.pid}`, file);
}
