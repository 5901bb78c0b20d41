/** Ports for the data of HTTP servers, their own or shared on one storage. Times in milliseconds. */
import type { Principal } from "./run.ts";

/** Keeps what 2025-era sessions were sent, so that a client can resume a broken stream. Times in milliseconds. */
export interface StreamStore {
  /** Stores a message and returns its id, which is higher than all before it. */
  append(
    sent: Record<"session" | "owner" | "stream" | "message", string> & { time: number },
  ): Promise<number>;
  /** Deletes the messages of a session up to this id. */
  dropUpTo(session: string, id: number): Promise<void>;
  /** The stream that a message of the session was sent on. `undefined`: it is not kept. */
  streamOf(session: string, id: number): Promise<string | undefined>;
  /** Messages of one stream with an id of at least `from`, oldest first. */
  page(
    place: Record<"session" | "stream", string> & Record<"from" | "limit", number>,
  ): Promise<{ id: number; owner: string; message: string }[]>;
  deleteSession(session: string): Promise<void>;
  /** Deletes all messages sent at or before `time`. */
  deleteUntil(time: number): Promise<void>;
  /** Deletes the oldest messages of all sessions until the others have at most so many characters. */
  shrinkTo(characters: number): Promise<void>;
  close(): void;
}

/** Data that a server needs to serve a session that another one opened. */
export interface StoredSession {
  /** Owner with its scopes, as the server writes it. */
  owner: string;
  /** The request that opened the session, serialised. */
  opening: string;
  /** Addresses of the resources whose changes the client wants to know. */
  subscriptions: string[];
}

/** Sessions that any server on the same storage serves. Idle times are counted by the storage's own clock. */
export interface SessionStore {
  /**
   * Stores a session. When its principal has `limit` of them, ends the one idle for longest, if for `busyMs`; otherwise
   * it may be ended after `waitMs`. `ended`: the session that made room.
   */
  open(
    session: Omit<StoredSession, "subscriptions"> & { id: string; principal: Principal },
    limits: { limit: number; busyMs: number },
  ): Promise<{ ok: true; ended?: string } | { ok: false; waitMs: number }>;
  /** Returns undefined if the session does not exist or has ended. */
  ownerOf(id: string): Promise<string | undefined>;
  /** Marks a session as used now, and returns the data to serve it. */
  join(id: string): Promise<StoredSession | undefined>;
  setOwner(id: string, owner: string): Promise<void>;
  /** Adds or removes a subscription; ignores those above the limit. */
  subscribe(id: string, uri: string, wanted: boolean): Promise<void>;
  /** Marks sessions as used now; returns those that have not ended. */
  touch(ids: readonly string[]): Promise<string[]>;
  end(id: string): Promise<void>;
  /** Ends sessions that were idle for this long; returns their ids. */
  endIdle(idleMs: number): Promise<string[]>;
}

/** State that servers on one storage share to serve the same clients. */
export interface SharedState {
  readonly sessions: SessionStore;
  /** Limits of requests that servers count together. */
  readonly rates: {
    /** Counts requests by key. Returns the number each key has left, below 0 when servers allowed too many. */
    spend(requests: ReadonlyMap<string, number>, perMinute: number): Promise<Map<string, number>>;
  };
}
