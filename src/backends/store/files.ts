import type { BaseStore, Item } from "@langchain/langgraph-checkpoint";
import type { FileData } from "../backend.ts";
import { infoOf } from "../file-data.ts";
import type { Expected, FileStore, ListedFile, ListOptions, StoredFile } from "../file-store.ts";
import { fromItem, toItem } from "./items.ts";
import { filesBelow, filesToList } from "./listing.ts";
import { badNamespace } from "./namespace.ts";

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

/** The files in one namespace of a LangGraph store. */
export class StoreFiles implements FileStore {
  readonly id: string;
  readonly lifetime = "persistent";
  readonly writes: FileStore["writes"];
  readonly #store: BaseStore;
  readonly #namespace: string[];

  constructor(store: BaseStore, namespace: string[]) {
    this.id = JSON.stringify(["store", ...namespace]);
    this.writes = isVersioned(store) ? "compare-and-set" : "last-writer-wins";
    this.#store = store;
    this.#namespace = namespace;
  }

  async get(path: string): Promise<StoredFile | undefined> {
    if (path === "/") return undefined;
    const item = await this.#item(path);
    const data = item === null ? undefined : fromItem(item.value);
    return item === null || data === undefined ? undefined : { data, version: item.version };
  }

  async put(path: string, data: FileData, expected: Expected): Promise<boolean> {
    const value = toItem(data);
    // What is there may be an item that holds no file; it is replaced like nothing.
    const now = await this.#item(path);
    const isFile = now !== null && fromItem(now.value) !== undefined;
    const isExpected =
      expected === "any" || (expected === "absent" ? !isFile : now?.version === expected.version);
    if (!isExpected) return false;
    if (isVersioned(this.#store)) {
      const stored = await this.#store.putIf(this.#namespace, path, value, now?.version ?? null);
      return stored !== undefined;
    }
    await this.#store.put(this.#namespace, path, value);
    return true;
  }

  async remove(path: string): Promise<void> {
    await this.#store.delete(this.#namespace, path);
  }

  async *list(path: string, { shallow }: ListOptions = {}): AsyncGenerator<ListedFile> {
    const own = await this.get(path);
    if (own !== undefined) {
      yield { ...infoOf(path, own.data), data: own.data };
      return;
    }
    const folder = { store: this.#store, namespace: this.#namespace, path };
    const files = shallow === true ? filesToList(folder) : filesBelow(folder);
    for await (const [file, data] of files) yield { ...infoOf(file, data), data };
  }

  explain(thrown: unknown): string {
    if (thrown instanceof Error && thrown.name === "InvalidNamespaceError") {
      throw badNamespace(this.#namespace);
    }
    return "the store failed; try again";
  }

  /** The item at a key with what tells its states apart: its version, or else what it holds and since when. */
  async #item(path: string): Promise<(Item & { version: string }) | null> {
    if (isVersioned(this.#store)) return this.#store.getVersioned(this.#namespace, path);
    const item = await this.#store.get(this.#namespace, path);
    // A copy: some stores hand out the very item they go on changing.
    return item && { ...item, version: JSON.stringify([item.updatedAt, item.value]) };
  }
}
