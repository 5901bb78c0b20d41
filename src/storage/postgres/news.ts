/** Tells servers on the same Postgres schema which runs changed, by NOTIFY. */
import { randomBytes } from "node:crypto";
import type { Client, Pool } from "pg";
import type { RunListener } from "../../runs/ports.ts";
import { postgresError } from "./errors.ts";

/**
 * For how long changes are gathered, in milliseconds. A NOTIFY within the transaction of each change would make all
 * commits of the server wait for one another.
 */
const GATHER_MS = 10;
/** Ids of one notification: Postgres takes 8000 bytes. */
const IDS_AT_ONCE = 200;
/** How often everybody looks, whatever was told: a notification may have been lost with a connection. */
const LOOK_EVERY_MS = 2000;
const LONGEST_PAUSE_MS = 5000;

export class ChangeNews {
  readonly #pool: Pool;
  readonly #newClient: () => Client;
  readonly #channel: string;
  /** Names this process, which knows its own changes already. */
  readonly #me = randomBytes(6).toString("hex");
  readonly #changed = new Set<string>();
  readonly #listeners = new Set<RunListener>();
  #gathering: NodeJS.Timeout | undefined;
  #sending: Promise<unknown> = Promise.resolve();
  #client: Client | undefined;
  #look: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(pool: Pool, newClient: () => Client, schema: string) {
    this.#pool = pool;
    this.#newClient = newClient;
    this.#channel = `deepagent_runs_${schema}`;
  }

  /** Tells the others that this process changed the run. */
  tell(runId: string): void {
    if (this.#isClosed) return;
    this.#changed.add(runId);
    this.#gathering ??= setTimeout(() => this.#send(), GATHER_MS);
  }

  /** Tells `listener` of what the others change, until it is closed. */
  listen(listener: RunListener): { close(): void } {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.#begin();
    return {
      close: () => {
        this.#listeners.delete(listener);
        if (this.#listeners.size === 0) this.#end();
      },
    };
  }

  async close(): Promise<void> {
    clearTimeout(this.#gathering);
    this.#send();
    this.#isClosed = true;
    this.#listeners.clear();
    this.#end();
    await this.#sending;
  }

  #send(): void {
    this.#gathering = undefined;
    const ids = [...this.#changed];
    this.#changed.clear();
    for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
      const values = [this.#channel, `${this.#me} ${ids.slice(at, at + IDS_AT_ONCE).join(" ")}`];
      // What is not told is found by the next look.
      const told = this.#pool.query("SELECT pg_notify($1, $2)", values).catch(() => undefined);
      this.#sending = Promise.all([this.#sending, told]);
    }
  }

  #begin(): void {
    this.#look = setInterval(
      () => this.#all((listener) => listener.changedElsewhere()),
      LOOK_EVERY_MS,
    ).unref();
    void this.#connect(0);
  }

  #end(): void {
    clearInterval(this.#look);
    const client = this.#client;
    this.#client = undefined;
    client?.removeAllListeners("end");
    client?.end().catch(() => undefined);
  }

  async #connect(pauseMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
    if (this.#listeners.size === 0) return;
    const client = this.#newClient();
    const again = (): void => {
      if (this.#client === client) this.#client = undefined;
      void this.#connect(Math.min(pauseMs * 2 + 100, LONGEST_PAUSE_MS));
    };
    client.on("error", (error) => this.#all((listener) => listener.failed(postgresError(error))));
    client.on("notification", ({ payload = "" }) => this.#hear(payload));
    try {
      await client.connect();
      await client.query(`LISTEN ${this.#channel}`);
    } catch (error) {
      this.#all((listener) => listener.failed(postgresError(error)));
      await client.end().catch(() => undefined);
      again();
      return;
    }
    if (this.#listeners.size === 0) return void client.end().catch(() => undefined);
    this.#client = client;
    client.once("end", again);
    // What was told before this was not heard.
    this.#all((listener) => listener.changedElsewhere());
  }

  #hear(payload: string): void {
    const [from, ...ids] = payload.split(" ");
    if (from === this.#me) return;
    for (const id of ids) this.#all((listener) => listener.changed(id, true));
  }

  #all(tell: (listener: RunListener) => void): void {
    for (const listener of this.#listeners) tell(listener);
  }
}
