/** Runs one world from its beginning until nothing is left to do, and checks what holds. */
import { createHash } from "node:crypto";
import { byIdentity } from "../../src/core/by-identity.ts";
import { errorMessage } from "../../src/core/errors.ts";
import { checkWorld } from "./invariants.ts";
import { movesAgents } from "./moves-agent.ts";
import { People } from "./people.ts";
import { type Plan, isFault } from "./plan.ts";
import { machine } from "./process-mark.ts";
import { BEGINNING, generator, inPlace, seedWith, turn, worldTime } from "./virtual-machine.ts";
import { type Agents, World } from "./world.ts";

export interface Outcome {
  /** Each begins with the name of an invariant. */
  problems: string[];
  turns: number;
  faults: number;
  /** In milliseconds; empty where servers know at once that another one is gone. */
  takeovers: readonly number[];
  /** Of the journals and rows. */
  hash: string;
}

/** Time of the world after which it has to be quiet, in milliseconds. */
const PATIENCE_MS = 2 * 3_600_000;
const MOST_TURNS = 200_000;

/** `agentsOf`: default: agents without a model. */
export async function runWorld(
  seed: number,
  plan: Plan,
  agentsOf: (world: World) => Agents = movesAgents,
): Promise<Outcome> {
  seedWith(seed);
  const world = new World(String(seed), generator(seed, 2), agentsOf);
  Object.assign(machine, { isKnown: world.isOneMachine, gone: world.gone });
  for (let count = 0; count < plan.servers; count += 1) world.open();
  const people = new People(world, seed);
  people.begin(plan);
  let turns = 0;
  const go = async (until: () => boolean): Promise<boolean> => {
    for (; turns < MOST_TURNS && worldTime() < BEGINNING + PATIENCE_MS; turns += 1) {
      if (turns % 16 === 0 && until()) return true;
      if (!(await turn())) return until();
    }
    return until();
  };
  await go(() => people.isDone && isQuiet(world));
  people.stop();
  // As housekeeping does every hour.
  let isKept = world.servers.length === 0;
  const [server] = world.servers;
  if (server !== undefined)
    void inPlace(server.place, () => server.service.prune({}, "keep")).then(
      () => (isKept = true),
      (error: unknown) => {
        isKept = true;
        world.problem(`no-internal-errors: housekeeping: ${errorMessage(error)}`);
      },
    );
  await go(() => isKept);
  checkWorld(world, people);
  const hash = createHash("sha256")
    .update(JSON.stringify(rowsOf(world)))
    .digest("hex")
    .slice(0, 12);
  for (const { place } of world.servers) place.isDead = true;
  // Whatever waits for its turn in the code of all servers has to be gone before the next world.
  for (let left = MOST_TURNS; left > 0 && (await turn()); left -= 1);
  world.agents.close();
  world.workspace.close();
  world.database.close();
  return {
    problems: world.problems,
    turns,
    faults: plan.acts.filter(isFault).length,
    takeovers: world.isOneMachine ? [] : world.takeovers,
    hash,
  };
}

/** No run is open, no news is on its way, and no server has anything left to do for a run. */
function isQuiet({ database }: World): boolean {
  const { count } = openIn(database).get() as { count: number };
  return count === 0;
}

const openIn = byIdentity((database: World["database"]) =>
  database.prepare(
    "SELECT (SELECT count(*) FROM runs WHERE ended_at IS NULL OR lease_owner IS NOT NULL) + (SELECT count(*) FROM news_deliveries) AS count",
  ),
);

const rowsOf = ({ database }: World): unknown => [
  database.prepare("SELECT run_id, seq, time, kind, data FROM run_events ORDER BY run_id, seq").all(),
  database.prepare("SELECT id, status, input_tokens, ended_at FROM runs ORDER BY number").all(),
];
