import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { ServerProcess } from "./process.ts";
import type { Request } from "./server.ts";

/** Longest life of a server from before it opens its databases; most are short. */
const LIFETIME_MS = 3000;
/** How long a server may be stopped before others take its runs. */
const LEASE_MS = 1200;

/** What is done to a server, as often as these numbers say. */
const ENDS = [
  ...Array<"kill">(10).fill("kill"),
  ...Array<"kill two">(3).fill("kill two"),
  ...Array<"terminate">(3).fill("terminate"),
  ...Array<"sleep">(4).fill("sleep"),
] as const;

function changeSkills(folder: string): void {
  if (existsSync(folder)) return rmSync(folder, { recursive: true });
  mkdirSync(folder);
  const text = "---\nname: notes\ndescription: How notes are taken.\n---\n\nShortly.\n";
  writeFileSync(join(folder, "SKILL.md"), text);
}

/** Servers on one data directory, each of them ended or stopped at random moments, and replaced. */
export class Fleet {
  readonly #servers = new Set<ServerProcess>();
  readonly #live: ServerProcess[] = [];
  readonly #script: string;
  readonly #linesServer: string;
  #isClosed = false;
  /** What was done so far. */
  readonly counts = { kills: 0, shutdowns: 0, sleeps: 0, locks: 0 };

  constructor({ script, linesServer }: { script: string; linesServer: string }) {
    this.#script = script;
    this.#linesServer = linesServer;
  }

  /** Starts one more, ready to answer. `changes`: it may know no other server, and skills come and go. */
  async open(folder: string, changes = false): Promise<ServerProcess> {
    this.throwIfClosed();
    const server = new ServerProcess(this.#script);
    this.#servers.add(server);
    await server.ready;
    const isKnown = !changes || Math.random() < 0.5;
    const linesServer = isKnown ? { linesServer: this.#linesServer } : {};
    if (changes) changeSkills(join(folder, "skills", "notes"));
    server
      .ask({ method: "open", folder, leaseMs: LEASE_MS, ...linesServer })
      .catch(() => (this.counts.locks += 1));
    this.#live.push(server);
    return server;
  }

  /** Starts servers one after the other and does something to each at a random moment, until the deadline. */
  async disturb(folder: string, deadline: number): Promise<void> {
    while (Date.now() < deadline) {
      const server = await this.open(folder, true);
      await delay(Math.random() ** 2 * LIFETIME_MS);
      if (!this.#live.includes(server)) continue; // killed together with another
      expect(server.ended).toBe(false);
      await this.#end(server, ENDS[Math.floor(Math.random() * ENDS.length)] ?? "kill");
    }
  }

  async #end(server: ServerProcess, how: (typeof ENDS)[number]): Promise<void> {
    this.#takeOut(server);
    if (how === "terminate") {
      expect(await server.terminate()).toBe(0);
      this.counts.shutdowns += 1;
      this.#servers.delete(server);
      return;
    }
    if (how === "sleep") await this.#letSleep(server);
    const other = how === "kill two" ? this.#live[0] : undefined;
    if (other !== undefined) this.#takeOut(other);
    await Promise.all([server, other].map(async (one) => one && this.#kill(one)));
  }

  /** Longer than its lease: it wakes amid the work that others have taken. */
  async #letSleep(server: ServerProcess): Promise<void> {
    server.sleep();
    await delay(LEASE_MS + Math.random() * LIFETIME_MS);
    server.wake();
    this.counts.sleeps += 1;
    this.#live.push(server);
    await delay(Math.random() * LIFETIME_MS);
    this.#takeOut(server);
  }

  async #kill(server: ServerProcess): Promise<void> {
    await server.kill();
    this.#servers.delete(server);
    this.counts.kills += 1;
  }

  #takeOut(server: ServerProcess): void {
    const index = this.#live.indexOf(server);
    if (index >= 0) this.#live.splice(index, 1);
  }

  /** Any server; `undefined` also when it ended before it answered, or one that sleeps holds a lock. */
  async ask(request: Request): Promise<unknown> {
    try {
      return await this.#live[Math.floor(Math.random() * this.#live.length)]?.ask(request);
    } catch (error) {
      if (!/stayed locked|connection is not open/.test(String(error))) throw error;
      this.counts.locks += 1;
      return undefined;
    }
  }

  /** Also stops what goes on after a test that took too long. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new Error("The servers were closed.");
  }

  /** All of them are gone afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#servers].map((server) => server.kill()));
  }
}
