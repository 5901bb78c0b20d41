/**
 * The main job, end to end: a client from npm gives the built program a task on real files, with a command that a
 * person approves, a background agent, a proposed change that a person applies, and `kill -9` on the way. Afterwards
 * every file, token and record is accounted for.
 */
import { parseArgs } from "node:util";
import { type StorageKind, openLab } from "./main-job-lab.ts";
import { CHILD_TURNS, MainJobModel, TASK } from "./main-job-model.ts";
import { type Row, accountFor } from "./main-job-account.ts";

const USAGE = "Usage: npm run main-job -- [--storage sqlite|postgres] [--packed] [--seed N]";
const KINDS: readonly StorageKind[] = ["sqlite", "postgres"];

/** Runs the job on each storage. Exit code: 0 if everything is accounted for, 1 if not, 2 for wrong options. */
export async function main({ args, print }: { args: readonly string[]; print(text: string): void }) {
  const { storage, packed, seed, help } = optionsIn(args);
  if (help) {
    print(USAGE);
    return 2;
  }
  let isComplete = true;
  for (const kind of storage) {
    const began = performance.now();
    const rows = await doJob(kind, { packed, seed });
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    print(`${kind}, seed ${seed}, ${seconds} s`);
    for (const { what, found, ok } of rows) print(`  ${ok ? "ok  " : "FAIL"} ${what}: ${found}`);
    isComplete &&= rows.every(({ ok }) => ok);
  }
  return isComplete ? 0 : 1;
}

function optionsIn(args: readonly string[]) {
  const options = {
    storage: { type: "string" },
    packed: { type: "boolean", default: false },
    seed: { type: "string" },
  } as const;
  const { storage, packed, seed } = parseArgs({ args: [...args], options }).values;
  const chosen = KINDS.filter((kind) => storage === undefined || storage === kind);
  const number = Number(seed ?? Math.floor(Math.random() * 1000));
  return { storage: chosen, packed, seed: number, help: chosen.length === 0 || !Number.isInteger(number) };
}

async function doJob(kind: StorageKind, { packed, seed }: { packed: boolean; seed: number }): Promise<Row[]> {
  const model = new MainJobModel();
  await using lab = await openLab(kind, { packed, model });
  // The background agent is in the middle of its work, and the command may be waiting for its approval.
  model.onRequest("child", CHILD_TURNS / 2, (server) => lab.kill(server));
  // A reply to the main agent is under way.
  model.onRequest("main", 2, (server) => lab.kill(server));
  const runId = await lab.start(TASK);
  // The person's answer is stored, and the files are being applied.
  const followed = await lab.follow(runId, { applied: () => lab.killSoon(seed % 40) });
  return accountFor({ lab, model, ...followed });
}
