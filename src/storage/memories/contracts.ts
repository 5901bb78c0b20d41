/** Types of memories: the store as the rest sees it, and the database that keeps them. */
import type { BaseStore, Item, PutOperation } from "@langchain/langgraph-checkpoint";
import type { Engine, Statement, Steps } from "../../runs/sql/steps.ts";
import type { NamespaceRange } from "./namespaces.ts";

/** Lifetime of items, with the names and units of LangGraph's Postgres store. */
export interface TtlConfig {
  /** Default lifetime of an item in minutes. Default: for ever. */
  defaultTtl?: number;
  /** Reading an item makes it live as long again. Default true. */
  refreshOnRead?: boolean;
  /** Least minutes between two sweeps that a write starts; they delete expired items. Default 60. */
  sweepIntervalMinutes?: number;
}

/** Lifetime options of one put or read, beyond LangGraph's operations. */
export interface Lifetime {
  /** Minutes; `null` for ever. Default: `ttl.defaultTtl` of the store. */
  ttl?: number | null;
  /** Default: `ttl.refreshOnRead` of the store. */
  refreshTtl?: boolean;
}

/** A put, with an optional lifetime of the item. */
export type StorePut = PutOperation & Lifetime;

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

/** A store of LangGraph with further methods for memories. */
export interface MemoryStore extends BaseStore {
  /** The items at or below `namespacePrefix` that contain words of the query, with the text around the match. */
  searchText(namespacePrefix: string[], query: string, limit: number): Promise<TextHit[]>;
  /** Deletes expired items; returns their number. */
  sweepExpiredItems(signal?: AbortSignal): Promise<number>;
}

/** An item that a search found. Without a score it has no relation to the query. */
export interface Ranked {
  id: number;
  score?: number;
}

/** The part of one put that the index gets. */
export interface IndexedText {
  /** For the parameters of `MemoryDatabase.columns`. */
  values: Statement["values"];
  /** Writes the rest in the transaction of the put. */
  after?: (id: number) => Steps<void>;
}

/** The tables of memories in one database: its engine, and all in which its SQL differs from that of others. */
export interface MemoryDatabase {
  readonly engine: Engine;
  /** Returns the tables for a namespace and those below it, confined by row-level security if there is any. */
  within(namespace: readonly string[]): MemoryDatabase;
  /** The columns of the index, each with the SQL of its value. */
  readonly columns: Readonly<Record<string, string>>;
  /** The condition of items that searches look at. */
  readonly isSearched: string;
  /** The condition of items whose stored value contains a text: its SQL for a parameter, and what that gets. */
  readonly contains: { sql: (parameter: string) => string; value: (text: string) => string };
  index(puts: readonly StorePut[]): Promise<readonly IndexedText[]>;
  /** The items of a range that have words of the query, best first. */
  byWords(range: NamespaceRange, query: string, page: { limit: number; now: number }): Promise<Ranked[]>;
  /** All items of a range, those most like the query first. Absent: `search` finds them by words. */
  byMeaning?(range: NamespaceRange, query: string, now: number): Promise<Ranked[]>;
}
