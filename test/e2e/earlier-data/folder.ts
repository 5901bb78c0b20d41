import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { onTestFinished, vi } from "vitest";
import { processMark } from "../../../src/core/process-mark.ts";
import { openConnection } from "../../../src/storage/sqlite/driver.ts";
import { type Home, openHome } from "../../support/harness.ts";
import { type StoryName, storyOf } from "./stories.ts";

/** Facts about a story besides the data folder of its program. */
export interface Facts {
  /** Time at which the program had ended. */
  writtenAt: number;
  runId: string;
  /** Keys of all questions to the client, oldest first. */
  keys: string[];
  /** The signed state of the last questions. A task has none. */
  state?: string;
  /** Files of the workspace. */
  files: Record<string, string>;
}

/** Path of a committed file. `place`: the story, or one of its other forms. */
export const committed = (place: string, file: string): string => join(import.meta.dirname, place, file);

/** Keeps the data folder of a program that has ended: each database as one small file, and all compressed. */
export function keepData(name: StoryName, { dataDir }: Home): void {
  mkdirSync(committed(name, ""), { recursive: true });
  for (const file of readdirSync(dataDir).filter((one) => one.endsWith(".db"))) {
    const database = openConnection(join(dataDir, file));
    database.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
  }
  const kept = readdirSync(dataDir, { withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { name: file } of kept) {
    const content = readFileSync(join(dataDir, file));
    writeFileSync(committed(name, `${file}.gz`), gzipSync(content, { level: 9 }));
  }
}

export function keepFacts(
  place: string,
  { workspace }: Home,
  told: Pick<Facts, "runId" | "keys" | "state">,
): void {
  const files = readdirSync(workspace, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => [name, readFileSync(join(workspace, name), "utf8")]);
  const facts: Facts = { writtenAt: Date.now(), ...told, files: Object.fromEntries(files) };
  writeFileSync(committed(place, "facts.json"), `${JSON.stringify(facts, null, 2)}\n`);
}

/** The workspace of a story and the model that continues it, an hour after its program ended. */
export async function openStory(
  name: StoryName,
  place: string = name,
): Promise<{ home: Home; facts: Facts }> {
  const facts = JSON.parse(readFileSync(committed(place, "facts.json"), "utf8")) as Facts;
  const { think, env } = storyOf(name);
  const home = await openHome({ think, env, files: facts.files });
  setClock(facts.writtenAt + 3_600_000);
  return { home, facts };
}

/** Unpacks the data folder of a story as if its program had worked on this machine, in this workspace. */
export function unpackData(name: StoryName, { dataDir, workspace }: Home): void {
  mkdirSync(dataDir, { mode: 0o700 });
  for (const file of readdirSync(committed(name, "")).filter((one) => one.endsWith(".gz"))) {
    writeFileSync(join(dataDir, file.slice(0, -3)), gunzipSync(readFileSync(committed(name, file))));
  }
  const database = openConnection(join(dataDir, "deepagent.db"));
  database
    .prepare("UPDATE runs SET environment = json_set(environment, '$.workspace', ?)")
    .run(realpathSync(workspace));
  // The owner of a lease becomes a process of this machine that has ended, so that the lease need not expire.
  const { pid } = spawnSync(process.execPath, ["--version"]);
  database
    .prepare("UPDATE runs SET lease_owner = ? WHERE lease_owner IS NOT NULL")
    .run(`srv_gone${processMark().replace(/\d+\.\d+$/, String(pid))}`);
  database.close();
}

/** Sets the clock of this process until the test has ended. Signed states are accepted for a day. */
function setClock(now: number): void {
  const real = Date.now.bind(Date);
  const ahead = now - real();
  const clock = vi.spyOn(Date, "now").mockImplementation(() => real() + ahead);
  onTestFinished(() => clock.mockRestore());
}
