import { setTimeout as delay } from "node:timers/promises";
import { seeded } from "../support/random.ts";
import { checkPromises } from "./checks.ts";
import { Cluster, type ClusterOptions } from "./cluster.ts";
import { type FaultKind, Faults } from "./faults.ts";
import { People } from "./person.ts";

export interface Disturbance extends Omit<ClusterOptions, "random"> {
  seed: number;
  /** How many faults, or which. */
  faults: number | readonly FaultKind[];
  /** Stories at once. */
  people?: number;
  log?: (line: string) => void;
}

export interface Report {
  /** Everything that must not have happened. */
  complaints: string[];
  faults: Map<FaultKind, number>;
  stories: number;
  decisions: number;
  messages: number;
  /** Events that clients read, and how many of them were stored again after Postgres crashed. */
  events: number;
  toldAgain: number;
  takeovers: number[];
  errors: Map<string, number>;
}

/** Between two faults, in milliseconds. */
const PAUSE_MS = { least: 200, most: 1400 };

/** Has work done by servers on one Postgres while faults come, and checks that everything acknowledged is kept. */
export async function disturb({
  seed,
  faults: wanted,
  people = 6,
  log = () => {},
  ...options
}: Disturbance): Promise<Report> {
  const random = seeded(seed);
  const cluster = await Cluster.open({ ...options, random: seeded(seed + 1) });
  const crowd = new People(cluster.urls, seeded(seed + 2));
  const faults = new Faults(cluster, random);
  const over = new AbortController();
  try {
    let number = 0;
    const name = (): string => `s${seed}-${(number += 1)}`;
    const work = Promise.all(Array.from({ length: people }, () => crowd.work(name, over.signal)));
    await delay(3000);
    const plan = typeof wanted === "number" ? faults.plan(wanted) : wanted;
    for (const [index, kind] of plan.entries()) {
      if (index % 50 === 0) log(`${index} of ${plan.length} faults, ${crowd.promised.size} stories`);
      await faults.inject(kind);
      await delay(PAUSE_MS.least + random() * (PAUSE_MS.most - PAUSE_MS.least));
    }
    over.abort();
    await faults.settled();
    log(`${plan.length} faults, ${crowd.promised.size} stories, the last ones go on`);
    await work;
    await untilQuiet(cluster);
    const { complaints, events, toldAgain } = await checkPromises(cluster, crowd.promised);
    const promised = [...crowd.promised.values()];
    const ofMembers = cluster.members.flatMap((member) => member.complaints);
    return {
      complaints: [...crowd.complaints, ...ofMembers, ...complaints],
      faults: faults.counts,
      stories: promised.length,
      decisions: promised.reduce((sum, { decisions }) => sum + decisions.size, 0),
      messages: promised.reduce((sum, { messages }) => sum + messages.length, 0),
      events,
      toldAgain,
      takeovers: faults.takeovers,
      errors: crowd.errors,
    };
  } finally {
    over.abort();
    await crowd.close();
    await cluster.close();
  }
}

/** Runs that messages began have ended, too, or had the time for it. */
async function untilQuiet(cluster: Cluster): Promise<void> {
  for (let second = 0; second < 90; second += 1) {
    if ((await cluster.query("SELECT 1 FROM runs WHERE ended_at IS NULL")).length === 0) return;
    await delay(1000);
  }
}
