/** The common part of all stores of items, wherever their rows are. */
import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { Lifetime } from "./contracts.ts";
import { checkAddress, checkRoot, decodeNamespace, encodeNamespace, matchesNamespace } from "./namespaces.ts";
import { ItemTurns, type WriteTurn } from "./turns.ts";

/** A put, which may say how long the item lives. */
export type StorePut = PutOperation & Lifetime;

/** The columns of an item that all stores have. */
export interface ItemFacts {
  id: number;
  /** Encoded. */
  namespace: string;
  key: string;
  version: number;
  /** Milliseconds since the epoch, as `updated_at`. */
  created_at: number;
  updated_at: number;
}

/**
 * LangGraph's `BaseStore`, whose operations a driver carries out. In one batch the reads see what was stored before
 * it. Of several writes of one item the last that was asked for counts, awaited or not.
 */
export abstract class ItemStore extends BaseStore {
  protected readonly turns: ItemTurns;

  constructor(turns = new ItemTurns()) {
    super();
    this.turns = turns;
  }

  protected abstract read(operation: GetOperation & Lifetime): Promise<Item | null>;
  protected abstract find(operation: SearchOperation & Lifetime): Promise<SearchItem[]>;
  protected abstract namespaces(operation: ListNamespacesOperation): Promise<string[][]>;
  /** Writes all of them or none, after `turn.come`. */
  protected abstract writeAll(puts: readonly StorePut[], turn: WriteTurn): Promise<void>;
  /** As `putIf`, after `turn.come`. */
  protected abstract writeIf(
    put: StorePut,
    expected: string | null,
    turn: WriteTurn,
  ): Promise<string | undefined>;

  override async batch<Operations extends Operation[]>(
    operations: Operations,
  ): Promise<OperationResults<Operations>> {
    const puts: StorePut[] = operations.filter((operation) => "value" in operation);
    for (const { namespace, key, value } of puts) if (value !== null) checkAddress(namespace, key);
    // Each operation has one result, of its kind.
    return this.#inTurn(puts, async (turn) => {
      const results: unknown[] = [];
      for (const operation of operations) results.push(await this.#resultOf(operation));
      if (puts.length > 0) await this.writeAll(puts, turn);
      return results;
    }) as Promise<OperationResults<Operations>>;
  }

  /** Gives the result of one read; `undefined` for a put. */
  async #resultOf(operation: Operation): Promise<unknown> {
    if ("namespacePrefix" in operation) return this.find(operation);
    if ("value" in operation) return undefined;
    return "key" in operation ? this.read(operation) : this.namespaces(operation);
  }

  /** Does `work`, which writes these items when its turn has come; whoever comes later for one of them waits. */
  async #inTurn<T>(
    puts: readonly Pick<PutOperation, "namespace" | "key">[],
    work: (turn: WriteTurn) => Promise<T>,
  ): Promise<T> {
    const items = puts.map(({ namespace, key }) => JSON.stringify([...namespace, key]));
    const turn = this.turns.take(new Set(items));
    try {
      return await work(turn);
    } finally {
      turn.done();
    }
  }

  // LangGraph refuses some texts as parts of a namespace, such as dots and colons, which names of principals have.
  // The inherited methods check that, so each is replaced by one that accepts any text.

  /** As inherited; the item may have a lifetime. */
  override async put(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    index?: false | string[],
    lifetime: Pick<Lifetime, "ttl"> = {},
  ): Promise<void> {
    checkRoot(namespace);
    await this.batch([{ namespace, key, value, ...(index === undefined ? {} : { index }), ...lifetime }]);
  }

  override async get(
    namespace: string[],
    key: string,
    lifetime: Pick<Lifetime, "refreshTtl"> = {},
  ): Promise<Item | null> {
    return this.read({ namespace, key, ...lifetime });
  }

  override async search(
    namespacePrefix: string[],
    options: Omit<SearchOperation, "namespacePrefix"> & Pick<Lifetime, "refreshTtl"> = {},
  ): Promise<SearchItem[]> {
    return this.find({ namespacePrefix, ...options });
  }

  override async delete(namespace: string[], key: string): Promise<void> {
    await this.batch([{ namespace, key, value: null }]);
  }

  override async listNamespaces({
    prefix,
    suffix,
    limit = 100,
    offset = 0,
    ...depth
  }: Parameters<BaseStore["listNamespaces"]>[0] = {}): Promise<string[][]> {
    const matchConditions: MatchCondition[] = [];
    if (prefix) matchConditions.push({ matchType: "prefix", path: prefix });
    if (suffix) matchConditions.push({ matchType: "suffix", path: suffix });
    return this.namespaces({ matchConditions, limit, offset, ...depth });
  }

  /**
   * Puts the item only if it still is what `expected` names (`null`: it does not exist). Gives the new
   * version, or undefined when somebody else was faster; safe against other processes.
   */
  async putIf(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    expected: string | null,
  ): Promise<string | undefined> {
    checkRoot(namespace);
    checkAddress(namespace, key);
    const put = { namespace, key, value };
    return this.#inTurn([put], (turn) => this.writeIf(put, expected, turn));
  }
}

const MINUTE_MS = 60_000;

/** Gives a lifetime in milliseconds; `null` is for ever. */
export const lifetimeOf = (minutes: number | null): number | null =>
  minutes === null ? null : Math.max(0, Math.round(minutes * MINUTE_MS));

export const versionOf = ({ id, version }: Pick<ItemFacts, "id" | "version">): string => `${id}.${version}`;

export const itemOf = (row: ItemFacts, value: Record<string, unknown>): Item => ({
  namespace: decodeNamespace(row.namespace),
  key: row.key,
  value,
  createdAt: new Date(row.created_at),
  updatedAt: new Date(row.updated_at),
});

export const MAX_COUNT = 2 ** 31 - 1;

/** Turns a number into a limit or offset that a database accepts. */
export const countOf = (value: number): number =>
  Number.isNaN(value) ? 0 : Math.trunc(Math.min(Math.max(value, 0), MAX_COUNT));

/** Those of the encoded namespaces that a listing shows. */
export function listed(
  stored: readonly string[],
  { matchConditions = [], maxDepth, limit, offset }: ListNamespacesOperation,
): string[][] {
  const matching = stored
    .map(decodeNamespace)
    .filter((namespace) => matchesNamespace(namespace, matchConditions))
    .map((namespace) => namespace.slice(0, maxDepth));
  const cut = [...new Map(matching.map((one) => [encodeNamespace(one), one])).values()];
  const first = countOf(offset ?? 0);
  return cut.slice(first, first + countOf(limit ?? MAX_COUNT));
}
