import type { Principal } from "../../runs/run.ts";

/** Receives changes of resources; the notifier of the SDK's HTTP handler is one. */
export interface ChangeSink {
  resourceUpdated(uri: string): void;
  resourcesChanged(): void;
}

/**
 * Passes changes of runs on to subscribed clients, whichever process works on a run. Sinks are the HTTP handler,
 * a stdio connection and every session; each drops what its client has not asked for.
 */
export interface ResourceChanges {
  /** Adds a receiver of the principal's changes, and of nobody else's; call the result to remove it. */
  attach(principal: Principal, sink: ChangeSink): () => void;
  /** Announces the changes of the principal's run that `uri` belongs to until it ends, and those of `watch`. */
  follow(principal: Principal, uri: string): void;
  /**
   * Announces runs that the principal starts anywhere, and what they change, until nobody receives it.
   * Nothing to do where that happens already.
   */
  watch(principal: Principal): void;
  /** A run was started here: announced at once. */
  runStarted(principal: Principal, runId: string): void;
  close(): Promise<void>;
}
