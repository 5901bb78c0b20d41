import type { BaseStore, Item } from "@langchain/langgraph-checkpoint";

/** How long items live; the names and units of LangGraph's Postgres store. */
export interface TtlConfig {
  /** Minutes an item lives for which `put` says nothing. Default: for ever. */
  defaultTtl?: number;
  /** Reading an item makes it live as long again. Default true. */
  refreshOnRead?: boolean;
  /** Least minutes between two sweeps that a write starts; they delete what has expired. Default 60. */
  sweepIntervalMinutes?: number;
}

/** What one put or read may say about lifetimes, beyond LangGraph's operations. */
export interface Lifetime {
  /** Minutes; `null` for ever. Default: `ttl.defaultTtl` of the store. */
  ttl?: number | null;
  /** Default: `ttl.refreshOnRead` of the store. */
  refreshTtl?: boolean;
}

/** An item and the name of the state it was read in. */
export interface VersionedItem extends Item {
  /** Changes with every write, and is never used again, not even after the item was deleted. */
  version: string;
}

export interface TextHit {
  namespace: string[];
  key: string;
  /** The text around the first match, or the beginning of the passage that means the same, on one line. */
  snippet: string;
  /** Higher is better; 0 for a match inside a word. */
  score: number;
}

/** A store of LangGraph with what memories need beyond it. */
export interface MemoryStore extends BaseStore {
  /** The items at or below `namespacePrefix` that contain words of the query, with the text around the match. */
  searchText(namespacePrefix: string[], query: string, limit: number): Promise<TextHit[]>;
  /** Deletes the items whose time is over; gives their number. */
  sweepExpiredItems(signal?: AbortSignal): Promise<number>;
}
