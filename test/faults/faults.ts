import { setTimeout as delay } from "node:timers/promises";
import type { PostgresServer } from "../support/postgres-server.ts";
import type { Cluster } from "./cluster.ts";
import type { Member } from "./member.ts";

/** How often each fault comes, of all of them together. Those of the second group take seconds. */
const SHARES = {
  "kill a process": 200,
  "kill two processes": 20,
  "terminate connections in Postgres": 360,
  "break connections in the network": 360,

  "restart Postgres": 14,
  "crash Postgres": 14,
  "Postgres gone for a while": 4,
  "fail over to a replica": 4,
  "cut the network, packets held": 8,
  "cut the network, connections lost": 8,
  "suspend a process": 8,
} as const;
export type FaultKind = keyof typeof SHARES;
const FAULT_KINDS = Object.keys(SHARES) as FaultKind[]; // its own keys

/** Longer than a lease, which is ten seconds. */
const CUT_MS = { least: 12_000, most: 20_000 };

/** Injects faults one after the other; those of the network and of time go on while others come. */
export class Faults {
  readonly counts = new Map<FaultKind, number>();
  /** Milliseconds after which runs of a killed process were worked on by another or over. */
  readonly takeovers: number[] = [];
  readonly #cluster: Cluster;
  readonly #random: () => number;
  readonly #underWay = new Set<Promise<void>>();
  /** Members that a fault has for itself. */
  readonly #busy = new Set<Member>();

  constructor(cluster: Cluster, random: () => number) {
    this.#cluster = cluster;
    this.#random = random;
  }

  /** Kinds of so many faults, in the shares of each, in any order. */
  plan(total: number): FaultKind[] {
    const sum = Object.values(SHARES).reduce((one, other) => one + other, 0);
    const kinds = FAULT_KINDS.flatMap((kind) =>
      Array<FaultKind>(Math.max(1, Math.round((total * SHARES[kind]) / sum))).fill(kind),
    );
    return kinds
      .map((kind) => ({ kind, at: this.#random() }))
      .toSorted((one, other) => one.at - other.at)
      .map(({ kind }) => kind);
  }

  async inject(kind: FaultKind): Promise<void> {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    const { postgres } = this.#cluster;
    switch (kind) {
      case "kill a process":
        return this.#kill(1);
      case "kill two processes":
        return this.#kill(2);
      case "terminate connections in Postgres":
        return this.#terminate();
      case "break connections in the network": {
        const share = this.#random();
        return this.#any()?.link.breakConnections(() => this.#random() < share);
      }
      case "restart Postgres":
      case "crash Postgres":
        await postgres.end(kind === "crash Postgres" ? "crash" : "fast");
        return postgres.start();
      case "Postgres gone for a while":
        await postgres.end("crash");
        await delay(5000 + this.#random() * 10_000);
        return postgres.start();
      case "fail over to a replica":
        return this.#failOver(await postgres.startReplica());
      case "cut the network, packets held":
      case "cut the network, connections lost":
        return this.#apart((member) => this.#cut(member, kind.endsWith("held") ? "held" : "lost"));
      case "suspend a process":
        return this.#apart((member) => this.#suspend(member));
    }
  }

  /** Resolves when no fault goes on any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async #kill(count: number): Promise<void> {
    const victims = this.#free().slice(0, count);
    const marks = victims.flatMap(({ mark }) => mark ?? []);
    await Promise.all(victims.map((member) => member.kill()));
    for (const mark of marks) this.#follow(this.#measure(mark));
    for (const member of victims) member.start();
  }

  /** What a killed process worked on, until another works on it. */
  async #measure(mark: string): Promise<void> {
    const begun = performance.now();
    const held = "SELECT id, lease_epoch AS epoch FROM runs WHERE right(lease_owner, length($1)) = $1";
    const left = new Map<string, string>();
    try {
      for (const { id, epoch } of await this.#cluster.query<{ id: string; epoch: string }>(held, [mark])) {
        left.set(id, epoch);
      }
      while (left.size > 0 && performance.now() - begun < 60_000) {
        const sql = "SELECT id, lease_epoch AS epoch FROM runs WHERE id = ANY($1)";
        for (const { id, epoch } of await this.#cluster.query<{ id: string; epoch: string }>(sql, [
          [...left.keys()],
        ])) {
          if (left.get(id) === epoch) continue;
          left.delete(id);
          this.takeovers.push(performance.now() - begun);
        }
        await delay(100);
      }
    } catch {
      // Postgres was gone, too: this one says nothing about processes.
    }
  }

  async #terminate(): Promise<void> {
    const share = this.#random();
    const sql = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'deepagent-mcp' AND random() < $1`;
    await this.#cluster.query(sql, [share]);
  }

  async #failOver(replica: PostgresServer): Promise<void> {
    await delay(this.#random() * 3000);
    await this.#cluster.failOver(replica);
  }

  async #cut(member: Member, how: "held" | "lost"): Promise<void> {
    member.link.cut(how);
    await delay(this.#long());
    member.link.mend();
  }

  async #suspend(member: Member): Promise<void> {
    member.sleep();
    await delay(this.#long());
    member.wake();
  }

  #long(): number {
    return CUT_MS.least + this.#random() * (CUT_MS.most - CUT_MS.least);
  }

  /** Does something to a member for a while, in which others have their faults. */
  #apart(work: (member: Member) => Promise<void>): void {
    const member = this.#any();
    if (member === undefined) return;
    this.#busy.add(member);
    this.#follow(work(member).finally(() => this.#busy.delete(member)));
  }

  #follow(work: Promise<void>): void {
    const done = work.finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  /** Members without a fault that goes on, in any order. */
  #free(): Member[] {
    return this.#cluster.members
      .filter((member) => !this.#busy.has(member) && member.isRunning)
      .map((member) => ({ member, at: this.#random() }))
      .toSorted((one, other) => one.at - other.at)
      .map(({ member }) => member);
  }

  #any(): Member | undefined {
    return this.#free()[0];
  }
}
