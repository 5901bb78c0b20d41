import type { BaseStore, Item } from "@langchain/langgraph-checkpoint";
import type { FileData } from "../backend.ts";
import { fromItem } from "./items.ts";

/** A stored file as it was found, and the way to replace exactly that. */
export interface Cell {
  /** Undefined when there is none. */
  data: FileData | undefined;
  /** False, and nothing put, when somebody else has replaced it. */
  put(value: Record<string, unknown>): Promise<boolean>;
}

/** What some stores offer beyond `BaseStore`: puts bound to the version that was read. */
interface VersionedStore {
  getVersioned(namespace: string[], key: string): Promise<(Item & { version: string }) | null>;
  putIf(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    expected: string | null,
  ): Promise<string | undefined>;
}

const isVersioned = (store: object): store is VersionedStore => "getVersioned" in store && "putIf" in store;

export async function openCell(store: BaseStore, namespace: string[], key: string): Promise<Cell> {
  if (isVersioned(store)) {
    const item = await store.getVersioned(namespace, key);
    return {
      data: item === null ? undefined : fromItem(item.value),
      put: async (value) => (await store.putIf(namespace, key, value, item?.version ?? null)) !== undefined,
    };
  }
  const found = await store.get(namespace, key);
  // Some stores hand out the very item they go on changing, so what it held is noted now.
  const seen = stampOf(found);
  return {
    data: found === null ? undefined : fromItem(found.value),
    put: async (value) => {
      if (stampOf(await store.get(namespace, key)) !== seen) return false;
      await store.put(namespace, key, value);
      return true;
    },
  };
}

const stampOf = (item: Item | null): string =>
  item === null ? "" : JSON.stringify([item.updatedAt, item.value]);
