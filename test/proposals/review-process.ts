import { readFileSync, writeSync } from "node:fs";
import { LeaseLostError } from "../../src/runs/ports.ts";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";

/**
 * Applies all that the copy of a thread proposes, after it has said that it begins. Its right to do so is what the file
 * `fence` says. Before the step of the third argument it gets the signal of the fourth, when it has just made sure that
 * it has that right.
 */
const [, , dir = "", threadId = "", fence = "", step = "0", signal = "SIGKILL"] = process.argv;
const proposals = new WorkspaceProposals({ dir, without: [], maxBytes: 1e8 });
const run = { id: "run_1", threadId, task: "Do it" };
const { files } = (await proposals.change(run)) ?? { files: [] };
const shown = Object.fromEntries(files.map(({ path, version }) => [path, version]));
const apply = Object.fromEntries(files.map(({ path }) => [path, "all" as const]));
let checks = 0;
const check = async (): Promise<void> => {
  if (readFileSync(fence, "utf8") !== "first") throw new LeaseLostError("run_1");
  checks += 1;
  if (checks !== Number(step)) return;
  writeSync(1, "stops\n");
  process.kill(process.pid, signal);
};
writeSync(1, "begins\n");
const outcome = await proposals
  .review(run, { apply }, { id: "review_1", by: "test", shown }, { id: "first", check })
  .catch((error: Error) => ({ kind: error.name }));
writeSync(1, `${outcome.kind} after ${checks} checks\n`);
