import { setImmediate as nextTurn } from "node:timers/promises";
import type { BaseStore, Item } from "@langchain/langgraph-checkpoint";
import type { FileData } from "../backend.ts";
import { isAtOrBelow, relativeTo, withSlash } from "../paths.ts";
import { filesOf, fromItem } from "./items.ts";

/** What some stores offer beyond `BaseStore`: the items of exactly one namespace in the order of their keys. */
interface OrderedStore {
  /** Those with `from <= key < to`, at most `limit`. */
  itemsBetween(namespace: string[], range: { from: string; to: string; limit: number }): Promise<Item[]>;
}

const isOrdered = (store: object): store is OrderedStore => "itemsBetween" in store;

/** Where files are in a store. */
export interface StoreFolder {
  store: BaseStore;
  namespace: string[];
  /** A normalized path. */
  path: string;
}

/** The file at a path and all below it. Reads nothing else where the store knows an order of keys. */
export async function* filesBelow({
  store,
  namespace,
  path,
}: StoreFolder): AsyncGenerator<[string, FileData]> {
  if (!isOrdered(store)) {
    for await (const file of filesOf(store, namespace)) if (isAtOrBelow(file[0], path)) yield file;
    return;
  }
  if (path !== "/") yield* filesIn(await store.itemsBetween(namespace, only(path)));
  const to = behind(withSlash(path));
  for (let from = withSlash(path); ;) {
    const items = await store.itemsBetween(namespace, { from, to, limit: MAX_PAGE });
    yield* filesIn(items);
    const last = items.at(-1);
    if (last === undefined || items.length < MAX_PAGE) return;
    from = after(last.key);
    await nextTurn();
  }
}

/**
 * Files that show what is in a folder: those directly in it, and of each folder in it at least one. Reads
 * little more where the store knows an order of keys.
 */
export async function* filesToList({
  store,
  namespace,
  path,
}: StoreFolder): AsyncGenerator<[string, FileData]> {
  if (!isOrdered(store)) {
    yield* filesBelow({ store, namespace, path });
    return;
  }
  const to = behind(withSlash(path));
  let limit = MIN_PAGE;
  for (let from = withSlash(path); ;) {
    const items = await store.itemsBetween(namespace, { from, to, limit });
    let shown: string | undefined;
    for (const file of filesIn(items)) {
      if (shown !== undefined && file[0].startsWith(shown)) continue;
      yield file;
      shown = folderOf(path, file[0]);
    }
    const last = items.at(-1);
    if (last === undefined || items.length < limit) return;
    const isShown = shown !== undefined && last.key.startsWith(shown);
    from = shown !== undefined && isShown ? behind(shown) : after(last.key);
    // A folder in the folder may be followed by another one; files may be followed by more files.
    limit = isShown ? MIN_PAGE : Math.min(limit * 2, MAX_PAGE);
    await nextTurn();
  }
}

const MIN_PAGE = 1;
const MAX_PAGE = 256;

/** The folder directly in `directory` that holds a file, with its slash; undefined for a file in `directory`. */
function folderOf(directory: string, file: string): string | undefined {
  const rest = relativeTo(directory, file);
  const slash = rest.indexOf("/");
  return slash === -1 ? undefined : withSlash(directory) + rest.slice(0, slash + 1);
}

/** The first key that is behind all that start with this prefix, which ends in a slash. */
const behind = (prefix: string): string => `${prefix.slice(0, -1)}0`;

/** The first key behind this one; no path contains NUL. */
const after = (key: string): string => `${key}\0`;

const only = (key: string): { from: string; to: string; limit: number } => ({
  from: key,
  to: after(key),
  limit: 1,
});

function* filesIn(items: readonly Item[]): Generator<[string, FileData]> {
  for (const { key, value } of items) {
    const data = fromItem(value);
    if (data !== undefined) yield [key, data];
  }
}
