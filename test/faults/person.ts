import { setTimeout as delay } from "node:timers/promises";
import { StreamableHTTPClientTransport as ModernHttp } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CLIENT_KINDS, type CallOutcome, type TestClient, connectClient } from "../support/clients.ts";
import { type Ending, endingIn, taskOf } from "./script.ts";

/** One event as a client reads it in the journal. */
export interface ToldEvent {
  seq: number;
  kind: string;
  time: string;
  data: unknown;
}

/** What servers acknowledged of one story, and must keep. */
export interface Promised {
  story: string;
  runId: string;
  /** Decision by approval. */
  decisions: Map<string, "approve" | "reject">;
  /** Each with the run that it went to. */
  messages: { name: string; runId: string }[];
  journal: ToldEvent[];
  ending?: Ending;
}

/** How long a client waits for an answer before it asks somebody else, in milliseconds. */
const PATIENCE_MS = 20_000;
/** A story takes seconds, and a fault at most half a minute. */
const STORY_MS = 240_000;

/** What no client should read: paths of the machine, and stacks. */
const INTERNALS = /\/(work|tmp|dev|root|home|usr|var)\/|node_modules|\bat .*:\d+:\d+|\.[cm]?[jt]s:\d+/;

/** People with clients of all kinds, who have stories done by whatever servers answer. */
export class People {
  readonly promised = new Map<string, Promised>();
  /** What must not happen, as far as clients see it. */
  readonly complaints: string[] = [];
  /** Texts of errors that clients got, and how often. */
  readonly errors = new Map<string, number>();
  readonly #urls: readonly string[];
  readonly #random: () => number;
  readonly #clients = new Map<string, Promise<TestClient>>();

  constructor(urls: readonly string[], random: () => number) {
    this.#urls = urls;
    this.#random = random;
  }

  /** Has stories done one after the other until `signal` aborts, and the last one to its end. */
  async work(names: () => string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await this.#tellStory(names());
  }

  async close(): Promise<void> {
    for (const client of this.#clients.values())
      await client.then((open) => open.close()).catch(() => undefined);
  }

  async #tellStory(story: string): Promise<void> {
    const until = performance.now() + STORY_MS;
    const started = await this.#insist(until, "run_deep_agent", {
      task: taskOf("story", story),
      idempotency_key: story,
      wait_seconds: 0,
    });
    if (started === undefined) return this.#complain(`${story} was not started in time`);
    const promise: Promised = {
      story,
      runId: String(started["run_id"]),
      decisions: new Map(),
      messages: [],
      journal: [],
    };
    this.promised.set(story, promise);
    const threadId = String(started["thread_id"]);
    while (performance.now() < until) {
      if (this.#random() < 0.2) await this.#tell(promise, threadId, until);
      if (this.#random() < 0.5) await this.#readJournal(promise);
      const report = await this.#call("check_deep_agent", { run_id: promise.runId, wait_seconds: 2 });
      if (report === undefined || report.isError) {
        await delay(200 + this.#random() * 300);
        continue;
      }
      const { status, answer, approvals } = report.structured;
      if (status === "failed" || status === "cancelled") {
        return this.#complain(`${story} ${promise.runId} is ${status}: ${report.text}`);
      }
      if (status === "completed") {
        const ending = endingIn(String(answer));
        if (ending === undefined) return this.#complain(`${story} ended with: ${String(answer)}`);
        promise.ending = ending;
        return;
      }
      for (const { id } of approvals as { id: string }[]) await this.#decide(promise, id, until); // as reported
    }
    this.#complain(`${story} ${promise.runId} did not end in time`);
  }

  /** Once, however often it takes; sometimes somebody says the contrary afterwards. */
  async #decide(promise: Promised, approval: string, until: number): Promise<void> {
    const { runId, decisions } = promise;
    const decision = decisions.get(approval) ?? (this.#random() < 0.7 ? "approve" : "reject");
    const args = { run_id: runId, approval_id: approval };
    const decided = await this.#insist(until, "answer_deep_agent", { ...args, decision });
    if (decided === undefined) return;
    decisions.set(approval, decision);
    if (this.#random() >= 0.3) return;
    const other = decision === "approve" ? "reject" : "approve";
    const again = await this.#call("answer_deep_agent", { ...args, decision: other });
    if (again?.isError === false) this.#complain(`${runId}: ${approval} was decided twice`);
  }

  async #tell(promise: Promised, threadId: string, until: number): Promise<void> {
    const { story, messages } = promise;
    const name = `${story}-also-${messages.length}`;
    const args = { task: taskOf("also", name), thread_id: threadId, idempotency_key: name, wait_seconds: 0 };
    const told = await this.#insist(until, "run_deep_agent", args);
    if (told !== undefined) messages.push({ name, runId: String(told["run_id"]) });
  }

  async #readJournal({ runId, journal }: Promised): Promise<void> {
    const uri = `deepagent://runs/${runId}/events?after=${journal.length}`;
    try {
      const { contents } = await (await this.#client()).client.readResource(uri);
      const lines = String(contents[0]?.["text"]).split("\n").filter(Boolean);
      for (const event of lines.map((line) => JSON.parse(line) as ToldEvent)) {
        if (event.seq !== journal.length + 1) {
          this.#complain(`${runId}: event ${event.seq} follows ${journal.length}`);
          return;
        }
        journal.push(event);
      }
    } catch (error) {
      this.#note(error instanceof Error ? error.message : String(error));
    }
  }

  /** Makes a call until it is acknowledged, with whatever server answers; `undefined`: it was not in time. */
  async #insist(
    until: number,
    name: string,
    args: Record<string, unknown>,
  ): Promise<Record<string, unknown> | undefined> {
    while (performance.now() < until) {
      const outcome = await this.#call(name, args);
      if (outcome?.isError === false) return outcome.structured;
      await delay(100 + this.#random() * 200);
    }
    return undefined;
  }

  /** `undefined`: the server was gone, or did not answer in time. */
  async #call(name: string, args: Record<string, unknown>): Promise<CallOutcome | undefined> {
    const { client, forget } = await this.#client().catch(() => ({
      client: undefined,
      forget: () => undefined,
    }));
    if (client === undefined) {
      await delay(100);
      return undefined;
    }
    try {
      const outcome = await client.call(name, args, { timeout: PATIENCE_MS });
      if (outcome.isError) this.#note(`${name}: ${outcome.text}`);
      return outcome;
    } catch (error) {
      this.#note(error instanceof Error ? error.message : String(error));
      // As programs do: connect again, perhaps to another server.
      forget();
      await delay(50);
      return undefined;
    }
  }

  async #client(): Promise<{ client: TestClient; forget: () => void }> {
    const pick = <T>(list: readonly T[]): T => list[Math.floor(this.#random() * list.length)] as T; // it is not empty
    const url = pick(this.#urls);
    const kind = pick(CLIENT_KINDS);
    const key = `${kind} ${url}`;
    const forget = (): void => void this.#clients.delete(key);
    const connector = {
      first: () => new FirstHttp(new URL(url)),
      modern: () => new ModernHttp(new URL(url)),
    };
    const opening = this.#clients.get(key) ?? connectClient(connector, { kind });
    this.#clients.set(key, opening);
    try {
      return { client: await opening, forget };
    } catch (error) {
      forget();
      throw error;
    }
  }

  #note(text: string): void {
    const known = text.replace(/run_\w+|[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID").slice(0, 300);
    if (INTERNALS.test(text) || text.includes("failed unexpectedly"))
      this.#complain(`a client was told: ${text}`);
    this.errors.set(known, (this.errors.get(known) ?? 0) + 1);
  }

  #complain(text: string): void {
    this.complaints.push(text);
  }
}
