import { z } from "zod";
import type { Logger } from "../../core/logger.ts";
import { isFinal, type Principal, type RunEvent } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { fileUri, RUN_VIEWS, runFileUri, runIdOf, runUri } from "./uris.ts";

/** Receives changes of resources; the notifier of the SDK's HTTP handler is one. */
export interface ChangeSink {
  resourceUpdated(uri: string): void;
  resourcesChanged(): void;
}

/**
 * The one way from runs to subscribed clients. Sinks are the HTTP handler, a stdio connection and
 * every 2025-era session; each drops what its client has not asked for.
 */
export interface ResourceChanges {
  /** Adds a receiver of the principal's changes, and of nobody else's; call the result to remove it. */
  attach(principal: Principal, sink: ChangeSink): () => void;
  /** Announces the changes of the principal's run that `uri` belongs to until it ends; other URIs are ignored. */
  follow(principal: Principal, uri: string): void;
  /** A run was started: the list of resources has grown, and its changes are announced from now on. */
  runStarted(principal: Principal, runId: string): void;
  close(): Promise<void>;
}

export interface ResourceChangesOptions {
  runs: () => Promise<RunService>;
  logger: Logger;
  /** Longest delay of an announcement, in milliseconds; changes of that time become one. Default 200. */
  delayMs?: number;
}

export function createResourceChanges(options: ResourceChangesOptions): ResourceChanges {
  const { runs, logger, delayMs = 200 } = options;
  const sinks = new Map<ChangeSink, Principal>();
  const followed = new Map<string, Promise<void>>();
  const stop = new AbortController();

  const sinksOf = (principal: Principal): ChangeSink[] =>
    [...sinks].filter(([, owner]) => owner === principal).map(([sink]) => sink);
  const announce = (principal: Principal, uris: Iterable<string>): void => {
    for (const uri of uris) for (const sink of sinksOf(principal)) sink.resourceUpdated(uri);
  };

  const followRun = async (principal: Principal, runId: string): Promise<void> => {
    const service = await runs();
    const view = await service.view(principal, runId);
    if (view === undefined || isFinal(view.run.status)) return;
    const changed = new Set<string>();
    const flush = (): void => {
      announce(principal, changed);
      changed.clear();
    };
    let timer: NodeJS.Timeout | undefined;
    try {
      const events = service.watch(principal, runId, { after: view.run.lastSeq, signal: stop.signal });
      for await (const event of events) {
        if (changed.size === 0) timer = setTimeout(flush, delayMs).unref();
        for (const uri of changedUris(event)) changed.add(uri);
      }
    } finally {
      clearTimeout(timer);
      flush();
    }
  };

  const startFollowing = (principal: Principal, runId: string): void => {
    const key = JSON.stringify([principal, runId]);
    if (followed.has(key) || stop.signal.aborted) return;
    const following = followRun(principal, runId)
      .catch((error: unknown) => logger.warn("resources.follow_failed", { runId, error }))
      .finally(() => followed.delete(key));
    followed.set(key, following);
  };

  return {
    attach: (principal, sink) => {
      sinks.set(sink, principal);
      return () => void sinks.delete(sink);
    },
    follow: (principal, uri) => {
      const runId = runIdOf(uri);
      if (runId !== undefined) startFollowing(principal, runId);
    },
    runStarted: (principal, runId) => {
      for (const sink of sinksOf(principal)) sink.resourcesChanged();
      startFollowing(principal, runId);
    },
    close: async () => {
      stop.abort();
      await Promise.all(followed.values());
    },
  };
}

/** The resources that an event of the journal changes. */
export function changedUris(event: RunEvent): string[] {
  const run = runUri(event.runId);
  const uris = [run, ...RUN_VIEWS.map((view) => `${run}/${view}`)];
  const { path } = event.data;
  if (event.kind !== "file_changed" || typeof path !== "string") return uris;
  return [...uris, fileUri(path), runFileUri(event.runId, path)];
}

const Listen = z.object({
  method: z.literal("subscriptions/listen"),
  params: z.object({ notifications: z.object({ resourceSubscriptions: z.array(z.string()) }) }),
});

/** The URIs a 2026-07-28 client asks to be told about, when `message` is such a request. */
export function listenedUris(message: unknown): readonly string[] {
  const parsed = Listen.safeParse(message);
  return parsed.success ? parsed.data.params.notifications.resourceSubscriptions : [];
}
