/** Notifies servers on the same Postgres schema of changed runs, by NOTIFY. */
import { randomBytes } from "node:crypto";
import type { Client, Pool } from "pg";
import type { RunListener } from "../../runs/ports.ts";
import { monotonicClock } from "../../core/clock.ts";
import { StorageError } from "../../core/errors.ts";
import { CONNECTED_LOCK } from "../../runs/sql/dialects.ts";
import { postgresError } from "./errors.ts";
import texts from "../texts.json" with { type: "json" };

/** Ids of one notification: Postgres takes 8000 bytes. */
const IDS_AT_ONCE = 200;
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
  /** When this process last notified itself, by the monotonic clock, until it has heard it. */
  #toldAt: number | undefined;
  #lagMs: number | undefined;
  /** True if any notification ever arrived. */
  #hasHeard = false;

  constructor(pool: Pool, newClient: () => Client, schema: string) {
    this.#pool = pool;
    this.#newClient = newClient;
    this.#channel = `deepagent_runs_${schema}`;
  }

  /** Notifies the others that this process changed the run. */
  tell(runId: string): void {
    if (this.#isClosed) return;
    this.#changed.add(runId);
    // Time in ms to gather changes: with a NOTIFY in each transaction, all commits would wait for one another.
    this.#gathering ??= setTimeout(() => this.#send(), 10);
  }

  /** Calls `listener` for the changes of others, until it is closed. */
  listen(listener: RunListener): { close(): void } {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) {
      this.#look = setInterval(() => {
        this.#all((listener) => listener.changedElsewhere());
        this.#check();
        // Every server also looks without news: a notification may be lost with a connection.
      }, 2000).unref();
      void this.#connect(0);
    }
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
      // The next look finds changes without a notification.
      const told = this.#pool.query("SELECT pg_notify($1, $2)", values).catch(() => undefined);
      this.#sending = Promise.all([this.#sending, told]);
    }
  }

  /** Delay of notifications when it was last measured. */
  lag(): { newsLagMs?: number } {
    const since = this.#toldAt === undefined ? 0 : monotonicClock() - this.#toldAt;
    return this.#lagMs === undefined ? {} : { newsLagMs: Math.max(this.#lagMs, since) };
  }

  /** Notifies itself, and replaces a connection on which that was not heard for a while. */
  #check(): void {
    if (this.#client === undefined) return;
    // A connection on which this process does not hear itself is replaced.
    if (this.#toldAt !== undefined && monotonicClock() - this.#toldAt > 10_000) {
      const text = this.#hasHeard ? texts.silentNews : texts.noNews;
      this.#all((listener) => listener.failed(new StorageError("storage_io", text)));
      this.#leave();
      void this.#connect(0);
      return;
    }
    this.#toldAt ??= monotonicClock();
    this.#pool.query("SELECT pg_notify($1, $2)", [this.#channel, this.#me]).catch(() => undefined);
  }

  #end(): void {
    clearInterval(this.#look);
    this.#leave();
  }

  /** Does not wait for the end of the connection: one that is silent does not come to it. */
  #leave(): void {
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
      void this.#connect(Math.min(pauseMs * 2 + 100, 5000));
    };
    client.on("error", (error) => this.#all((listener) => listener.failed(postgresError(error))));
    client.on("notification", ({ payload = "" }) => {
      const [from, ...ids] = payload.split(" ");
      if (from === this.#me) {
        this.#hasHeard = true;
        if (this.#toldAt !== undefined && ids.length === 0) this.#lagMs = monotonicClock() - this.#toldAt;
        if (ids.length === 0) this.#toldAt = undefined;
        return;
      }
      for (const id of ids) this.#all((listener) => listener.changed(id, true));
    });
    try {
      await client.connect();
      await client.query(`LISTEN ${this.#channel}`);
      // Ends with the connection, and so with this process. It is shared, because the connection before may not have ended.
      const lock = `SELECT pg_advisory_lock_shared(${CONNECTED_LOCK}, hashtext($1))`;
      for (const { owner } of this.#listeners) if (owner) await client.query(lock, [owner]);
    } catch (error) {
      this.#all((listener) => listener.failed(postgresError(error)));
      await client.end().catch(() => undefined);
      again();
      return;
    }
    if (this.#listeners.size === 0) return void client.end().catch(() => undefined);
    this.#client = client;
    this.#toldAt = undefined;
    client.once("end", again);
    // News from before this was not heard.
    this.#all((listener) => listener.changedElsewhere());
  }

  #all(tell: (listener: RunListener) => void): void {
    for (const listener of this.#listeners) tell(listener);
  }
}
