/**
 * Runs seeded worlds: `--seeds N` from `--from N` (default 1), or one `--seed N`; `--without 1,4` leaves acts of its plan
 * out. `--tier 2` has the agents of the product. Prints each failure as the shortest plan that still fails. `--hashes`
 * prints what became of each seed.
 */
import { parseArgs } from "node:util";
import { type Plan, planFor } from "./plan.ts";
import { install, installFiles } from "./virtual-machine.ts";

const realNow = performance.now.bind(performance);
const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    without: { type: "string" },
    /** 1: agents without a model. 2: those of the product. */
    tier: { type: "string", default: "1" },
    /** Failures whose plans are made short. */
    shrunk: { type: "string", default: "3" },
    hashes: { type: "boolean", default: false },
    /** Ends at the first failure. */
    first: { type: "boolean", default: false },
  },
});
install();
const { runWorld } = await import("./run-world.ts");
const agents = values.tier === "2" ? (await import("./real-agents.ts")).realAgents : undefined;
installFiles();

const nameOf = (problem: string): string => problem.slice(0, problem.indexOf(":"));

/** Leaves out one act after the other, as long as the same invariant does not hold. */
async function shrink(seed: number, name: string): Promise<number[]> {
  const left: number[] = [];
  for (const [index] of planFor(seed).acts.entries()) {
    const { problems } = await runWorld(seed, planWithout(seed, [...left, index]), agents);
    if (problems.some((problem) => nameOf(problem) === name)) left.push(index);
  }
  return left;
}

function planWithout(seed: number, left: readonly number[]): Plan {
  const plan = planFor(seed);
  return { ...plan, acts: plan.acts.filter((_, index) => !left.includes(index)) };
}

// Loads what is loaded on first use, which takes real time.
await runWorld(0, planFor(0), agents);
const began = realNow();
const first = Number(values.seed ?? values.from);
const last = values.seed === undefined ? first + Number(values.seeds) - 1 : first;
const given = (values.without ?? "").split(",").filter(Boolean).map(Number);
let [failed, turns, faults] = [0, 0, 0];
const takeovers: number[] = [];
for (let seed = first; seed <= last; seed += 1) {
  const outcome = await runWorld(seed, planWithout(seed, given), agents);
  turns += outcome.turns;
  faults += outcome.faults;
  takeovers.push(...outcome.takeovers);
  if (values.hashes) console.log(`seed ${seed} ${outcome.hash} ${outcome.turns}`);
  const [problem] = outcome.problems;
  if (problem === undefined) continue;
  failed += 1;
  console.log(`\nseed ${seed}: ${outcome.problems.slice(0, 4).join("\n  ")}`);
  if (values.first) break;
  if (failed > Number(values.shrunk)) continue;
  const without = given.length > 0 ? given : await shrink(seed, nameOf(problem));
  const plan = planWithout(seed, without);
  console.log(`  ${plan.servers} servers; ${plan.acts.map((act) => JSON.stringify(act)).join("\n  ")}`);
  const left = without.length > 0 ? ` --without ${without.join(",")}` : "";
  console.log(`  npm run simulate -- --seed ${seed}${left}${agents === undefined ? "" : " --tier 2"}`);
}
const percentile = (share: number): number | undefined => {
  const sorted = takeovers.toSorted((one, other) => one - other);
  return sorted.length === 0 ? undefined : Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
};
const seconds = (realNow() - began) / 1000;
const count = last - first + 1;
console.log(
  JSON.stringify({
    worlds: count,
    failed,
    turns,
    faults,
    seconds: Math.round(seconds * 10) / 10,
    msEach: Math.round((seconds * 1000) / count),
    // Virtual milliseconds until another machine took a killed server's run over.
    takeovers: takeovers.length,
    takeoverP50: percentile(0.5),
    takeoverP99: percentile(0.99),
  }),
);
process.exit(failed > 0 ? 1 : 0);
