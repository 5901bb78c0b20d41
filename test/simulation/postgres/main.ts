/**
 * Runs worlds on a real Postgres, several at once: `--seeds N` from `--from N`, `--at-once N`. Their plans are those of
 * simulated worlds without schedules. Nothing of them repeats exactly, because time is real.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { setTimeout as delay } from "node:timers/promises";
import { createLogger } from "../../../src/core/logger.ts";
import { openPostgres } from "../../../src/storage/postgres/storage.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { checkWorld } from "../invariants.ts";
import { People } from "../people.ts";
import { type Act, type Plan, isFault, planFor } from "../plan.ts";
import { generator } from "../random.ts";
import { THREADS_TABLE } from "./threads.ts";
import { PostgresWorld, ServerProcesses } from "./world.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "10" },
    from: { type: "string", default: "1" },
    /** Acts of the plan that are left out, by number. */
    without: { type: "string", default: "" },
    /** Kinds of faults, such as `kill`; others are left out. Default: all. */
    only: { type: "string", default: "" },
    "at-once": { type: "string", default: "4" },
    postgres: { type: "boolean", default: true },
  },
});

/** Time after which a world has to be quiet, in milliseconds: the fourth attempt to send news comes after ten minutes. */
const PATIENCE_MS = 900_000;

/** A takeover that took longer is reported. */
const SLOW_MS = 5000;

const DISTURBS_STORAGE = ["slow storage", "lost connection", "full disk", "stop", "stop in a review"];

const planOf = (seed: number): Plan => {
  const { acts, servers } = planFor(seed);
  const left = values.without.split(",").filter(Boolean).map(Number);
  const only = values.only.split(",").filter(Boolean);
  const isLeftOut = (act: Act): boolean => only.length > 0 && isFault(act) && !only.includes(act.kind);
  // Two at least. A schedule has a run a minute, and these worlds take half a minute.
  return {
    servers: Math.max(servers, 2),
    acts: acts.filter((act, index) => act.kind !== "schedule" && !left.includes(index) && !isLeftOut(act)),
  };
};

// What was started ends with this process.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const postgres = await startPostgres({ settings: { max_connections: "400" } });
const processes = new ServerProcesses(fileURLToPath(new URL("./server.mjs", import.meta.url)));
await makeTemplate(postgres);

const figures = {
  claims: [] as number[],
  undisturbed: [] as number[],
  oneMachine: [] as number[],
  others: [] as number[],
};
const faults = new Map<string, number>();
let [failed, done] = [0, 0];
const began = performance.now();
const last = Number(values.from) + Number(values.seeds) - 1;
let next = Number(values.from);
await Promise.all(
  Array.from({ length: Number(values["at-once"]) }, async () => {
    while (next <= last) await runOne(next++);
  }),
);
processes.close();
await postgres.stop();
summary();
process.exit(failed > 0 ? 1 : 0);

async function runOne(seed: number): Promise<void> {
  const plan = planOf(seed);
  await postgres.query(`CREATE DATABASE world_${seed} TEMPLATE empty_world`);
  const world = new PostgresWorld(seed, generator(seed, 2), { postgres, processes });
  let log: string[] = [];
  try {
    await world.begin(plan.servers);
    const people = new People(world, seed);
    people.begin(plan);
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until && !(people.isDone && (await world.isQuiet()))) await delay(300);
    if (performance.now() >= until) console.log(`seed ${seed}: was not quiet after ${PATIENCE_MS / 1000} s`);
    people.stop();
    await world.prune();
    checkWorld(await world.ended(), people);
    const { claims, takeovers } = world.measured();
    if (takeovers.some((ms) => ms > SLOW_MS))
      console.log(
        `seed ${seed}: a killed server's run was taken over after ${Math.round(Math.max(...takeovers))} ms`,
      );
    figures.claims.push(...claims);
    if (!plan.acts.some(({ kind }) => DISTURBS_STORAGE.includes(kind))) figures.undisturbed.push(...claims);
    figures[world.isOneMachine ? "oneMachine" : "others"].push(...takeovers);
  } catch (thrown) {
    world.problem(`world: ${thrown instanceof Error ? thrown.stack : String(thrown)}`);
  } finally {
    log = world.log();
    await world.close();
  }
  for (const { kind } of plan.acts.filter(isFault)) faults.set(kind, (faults.get(kind) ?? 0) + 1);
  done += 1;
  if (done % 25 === 0) summary();
  await postgres.query(`DROP DATABASE world_${seed} WITH (FORCE)`);
  if (world.problems.length === 0) return;
  failed += 1;
  console.log(`\nseed ${seed}: ${world.problems.slice(0, 6).join("\n  ").slice(0, 3000)}`);
  console.log(`  ${plan.servers} servers; ${plan.acts.map((act) => JSON.stringify(act)).join("\n  ")}`);
  console.log(`  ${log.join("\n  ")}`);
}

async function makeTemplate(server: PostgresServer): Promise<void> {
  await server.query("CREATE DATABASE empty_world");
  const url = server.url.replace(/\/postgres$/, "/empty_world");
  const storage = await openPostgres({ url, logger: createLogger("error") });
  await storage.close();
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(THREADS_TABLE);
  await client.end();
}

function summary(): void {
  const percentile = (numbers: readonly number[], share: number): number | undefined => {
    const sorted = numbers.toSorted((one, other) => one - other);
    const found = sorted[Math.ceil(sorted.length * share) - 1];
    return found === undefined ? undefined : Math.round(found * 10) / 10;
  };
  const of = (numbers: readonly number[]) => ({
    count: numbers.length,
    p50: percentile(numbers, 0.5),
    p99: percentile(numbers, 0.99),
  });
  console.log(
    JSON.stringify({
      worlds: done,
      failed,
      seconds: Math.round((performance.now() - began) / 1000),
      faults: Object.fromEntries(faults),
      claimsMs: of(figures.claims),
      claimsWithGoodConnectionsMs: of(figures.undisturbed),
      takeoversOnOneMachineMs: of(figures.oneMachine),
      takeoversOnOthersMs: of(figures.others),
    }),
  );
}
