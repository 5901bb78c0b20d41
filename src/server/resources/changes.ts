import { setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { isTransient } from "../../core/errors.ts";
import { type Principal, isFinal } from "../../runs/run.ts";
import type { ChangeSink, ResourceChanges } from "../contracts/changes.ts";
import type { ServerDeps } from "../contracts/deps.ts";
import { RUN_VIEWS, fileUri, runFileUri, runIdOf, runUri } from "../contracts/uris.ts";

type Deps = Pick<ServerDeps, "runs" | "logger">;

/** Delay before the next attempt if storage cannot be read, in ms. */
const RETRY_MS = 1000;

export const createResourceChanges = (deps: Deps): ResourceChanges => new Changes(deps);

class Changes implements ResourceChanges {
  readonly #deps: Deps;
  readonly #sinks = new Map<ChangeSink, Principal>();
  /** Runs that are followed, by principal and id. */
  readonly #followed = new Map<string, Promise<void>>();
  /** Followed runs that were announced as new. */
  readonly #announced = new Set<string>();
  readonly #watched = new Map<Principal, { stop: AbortController; done: Promise<void> }>();
  readonly #stop = new AbortController();

  constructor(deps: Deps) {
    this.#deps = deps;
    // Each run that is followed listens to it.
    setMaxListeners(0, this.#stop.signal);
  }

  attach(principal: Principal, sink: ChangeSink): () => void {
    this.#sinks.set(sink, principal);
    return () => {
      this.#sinks.delete(sink);
      if (this.#sinksOf(principal).length === 0) this.#watched.get(principal)?.stop.abort();
    };
  }

  follow(principal: Principal, uri: string): void {
    const runId = runIdOf(uri);
    if (runId !== undefined) this.#follow(principal, runId);
    this.watch(principal);
  }

  watch(principal: Principal): void {
    const isOver = this.#stop.signal.aborted || this.#sinksOf(principal).length === 0;
    if (isOver || this.#watched.has(principal)) return;
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, this.#stop.signal]);
    const done = this.#persist("resources.watch_failed", signal, async (again) => {
      // Runs started while the watch was down are not announced yet.
      if (again) for (const sink of this.#sinksOf(principal)) sink.resourcesChanged();
      await this.#watchStarts(principal, signal);
    }).finally(() => {
      stop.abort();
      this.#watched.delete(principal);
    });
    this.#watched.set(principal, { stop, done });
  }

  runStarted(principal: Principal, runId: string): void {
    this.#grown(principal, runId);
    this.watch(principal);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    const watching = [...this.#watched.values()].map(({ done }) => done);
    await Promise.all([...this.#followed.values(), ...watching]);
  }

  #sinksOf(principal: Principal): ChangeSink[] {
    return [...this.#sinks].filter(([, owner]) => owner === principal).map(([sink]) => sink);
  }

  /** Announces a new run in the list, once, even if it is noticed in two ways. */
  #grown(principal: Principal, runId: string): void {
    const key = followKey(principal, runId);
    if (this.#announced.has(key)) return;
    this.#announced.add(key);
    for (const sink of this.#sinksOf(principal)) sink.resourcesChanged();
    this.#follow(principal, runId, true);
  }

  #follow(principal: Principal, runId: string, fromStart = false): void {
    const key = followKey(principal, runId);
    if (this.#followed.has(key) || this.#stop.signal.aborted) return;
    const following = this.#persist("resources.follow_failed", this.#stop.signal, (again) =>
      // Changes made while the run was not followed are unknown, so all of it is announced again.
      this.#followRun(principal, runId, fromStart || again),
    ).finally(() => {
      this.#followed.delete(key);
      this.#announced.delete(key);
    });
    this.#followed.set(key, following);
  }

  /** Does `work` until it ends; while storage cannot be read, tries `again`. Never throws. */
  async #persist(failed: string, signal: AbortSignal, work: (again: boolean) => Promise<void>) {
    for (let again = false; !signal.aborted; again = true) {
      try {
        return await work(again);
      } catch (error) {
        // Every run that is followed comes here while storage is gone.
        this.#deps.logger[again ? "debug" : "warn"](failed, { error });
        if (!isTransient(error)) return;
      }
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #followRun(principal: Principal, runId: string, fromStart: boolean): Promise<void> {
    const { read, watch } = (await this.#deps.runs()).as({ principal });
    const view = await read.view(runId);
    if (view === undefined || (!fromStart && isFinal(view.run.status))) return;
    const changed = new Set<string>();
    const flush = (): void => {
      for (const uri of changed) for (const sink of this.#sinksOf(principal)) sink.resourceUpdated(uri);
      changed.clear();
    };
    let timer: NodeJS.Timeout | undefined;
    try {
      const after = fromStart ? 0 : view.run.lastSeq;
      for await (const event of watch.events(runId, { after, signal: this.#stop.signal })) {
        // Changes of this time become one announcement.
        if (changed.size === 0) timer = setTimeout(flush, 200).unref();
        const run = runUri(event.runId);
        for (const uri of [run, ...RUN_VIEWS.map((name) => `${run}/${name}`)]) changed.add(uri);
        if (event.kind !== "file_changed") continue;
        changed.add(fileUri(event.data.path)).add(runFileUri(event.runId, event.data.path));
      }
    } finally {
      clearTimeout(timer);
      flush();
    }
  }

  async #watchStarts(principal: Principal, signal: AbortSignal): Promise<void> {
    const { read, watch } = (await this.#deps.runs()).as({ principal });
    // Begins before the list is read: a run that starts in between is found twice rather than never.
    const starts = watch.starts({ signal })[Symbol.asyncIterator]();
    let next = starts.next();
    // It may fail before anybody waits for it.
    next.catch(() => undefined);
    for (const { id, status } of await read.list({ limit: 50 })) {
      if (!isFinal(status)) this.#follow(principal, id);
    }
    for (let { done, value } = await next; !done; { done, value } = await next) {
      next = starts.next();
      this.#grown(principal, value.id);
    }
  }
}

const followKey = (principal: Principal, runId: string): string => JSON.stringify([principal, runId]);

const Listen = z.object({
  method: z.literal("subscriptions/listen"),
  params: z.object({ notifications: z.object({ resourceSubscriptions: z.array(z.string()).default([]) }) }),
});

/** Follows the resources that `message` subscribes to, if it is such a request. */
export function followListened(changes: ResourceChanges, principal: Principal, message: unknown): void {
  const parsed = Listen.safeParse(message);
  if (!parsed.success) return;
  changes.watch(principal);
  for (const uri of parsed.data.params.notifications.resourceSubscriptions) changes.follow(principal, uri);
}
