import type { Principal } from "../../runs/run.ts";

/** Receives changes of resources; the notifier of the SDK's HTTP handler is one. */
export interface ChangeSink {
  resourceUpdated(uri: string): void;
  resourcesChanged(): void;
}

/**
 * Passes changes of runs to subscribed clients, whichever process works on a run. Sinks are the HTTP handler, a stdio
 * connection and every session; each drops changes that its client has not asked for.
 */
export interface ResourceChanges {
  /** Adds a receiver of the principal's changes, and of nobody else's; call the result to remove it. */
  attach(principal: Principal, sink: ChangeSink): () => void;
  /** Announces the changes of the principal's run that `uri` belongs to until it ends, and those of `watch`. */
  follow(principal: Principal, uri: string): void;
  /**
   * Announces runs that the principal starts anywhere, and their changes, until nobody receives them. Does nothing if
   * they are announced already.
   */
  watch(principal: Principal): void;
  /** A run was started here: announced at once. */
  runStarted(principal: Principal, runId: string): void;
  close(): Promise<void>;
}
