/** Carries out the faults of a plan. */
import type { RunsByHolder } from "../../src/runs/service.ts";
import type { Act } from "./plan.ts";
import { type Place, later, worldTime } from "./virtual-machine.ts";
import type { Workspace } from "./workspace.ts";

/** A server that people call. */
export interface Reached {
  place: Place;
  service: RunsByHolder;
}

/** A world as people and faults see it. */
export interface Disturbed<Server extends Reached = Reached> {
  readonly servers: readonly Server[];
  readonly workspace: Workspace;
  problem(text: string): void;
  /** Starts one more server. */
  open(): unknown;
  /** Ends the process of a server. */
  kill(server: Server): unknown;
  stop(server: Server, forMs: number): void;
  loseConnection(server: Server, forMs: number): void;
  slowStorage(server: Server, forMs: number): void;
  setClock(server: Server, byMs: number): void;
  fillDisk(forMs: number): void;
  silenceReceiver(forMs: number): void;
  /** The server that works on a thread, if one does. */
  holderOf(threadId: string): Promise<Server | undefined>;
}

export type Fault = Extract<Act, { forMs: number } | { byMs: number }>;

export async function disturb<Server extends Reached>(
  world: Disturbed<Server>,
  act: Fault,
  draw: () => number,
): Promise<void> {
  if (act.kind === "stop in a review") return stopInReview(world, act.forMs, draw);
  if (act.kind === "full disk") world.fillDisk(act.forMs);
  else if (act.kind === "receiver down") world.silenceReceiver(act.forMs);
  else if ("server" in act) {
    const server = world.servers[act.server % Math.max(world.servers.length, 1)];
    if (server !== undefined) await disturbServer(world, server, act);
  }
  if ("forMs" in act) await later(act.forMs);
}

async function stopInReview<Server extends Reached>(
  world: Disturbed<Server>,
  forMs: number,
  draw: () => number,
): Promise<void> {
  const { workspace } = world;
  for (let waited = 0; waited < 120_000; waited += 20) {
    await later(20);
    const threadId = workspace.appliedNow();
    const server = threadId === undefined ? undefined : await world.holderOf(threadId);
    if (server === undefined) continue;
    world.stop(server, forMs);
    // Meanwhile a person edits what the change is about.
    for (let edits = 0; edits < 3; edits += 1) {
      await later((forMs / 3) * draw());
      workspace.edit(draw, `edit ${edits} after ${worldTime()}`);
    }
    return;
  }
}

async function disturbServer<Server extends Reached>(
  world: Disturbed<Server>,
  server: Server,
  act: Extract<Fault, { server: number }>,
): Promise<void> {
  if (act.kind === "stop") world.stop(server, act.forMs);
  if (act.kind === "clock step") world.setClock(server, act.byMs);
  if (act.kind === "lost connection") world.loseConnection(server, act.forMs);
  if (act.kind === "slow storage") world.slowStorage(server, act.forMs);
  if (act.kind !== "kill") return;
  world.kill(server);
  await later(act.forMs);
  world.open();
}
