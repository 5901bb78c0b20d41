import { setImmediate as nextTurn } from "node:timers/promises";
import type { BaseStore, Item } from "@langchain/langgraph-checkpoint";
import { ConfigurationError } from "../../core/errors.ts";
import { fill } from "../../core/text.ts";
import type { StoredMemories } from "../../storage/memories/store.ts";
import type { Backend, BackendRuntime, FileData } from "../backend.ts";
import { errors } from "../errors.ts";
import { toFileInfo } from "../file-data.ts";
import {
  type Expected,
  type FileStore,
  FileStoreBackend,
  type FileStoreBackendOptions,
  type ListOptions,
  type ListedFile,
  type StoredFile,
} from "../file-store.ts";
import { decodeBase64, isTextType } from "../mime.ts";
import { isAtOrBelow, subfolder, withSlash } from "../paths.ts";
import { type StateAndStore, ambientRuntime, bindRuntime, splitArguments } from "../runtime.ts";
import texts from "../texts.json" with { type: "json" };

const isBatched = (store: object): store is { store: BaseStore } =>
  "lg_name" in store && store.lg_name === "AsyncBatchedStore" && "store" in store;

const BASE64 = "base64";

function fromItem(value: Record<string, unknown>): FileData | undefined {
  const { content, mimeType, encoding, created_at: created, modified_at: modified } = value;
  const times = {
    created_at: typeof created === "string" ? created : "",
    modified_at: typeof modified === "string" ? modified : "",
  };
  if (Array.isArray(content)) {
    const lines = content.filter((line) => typeof line === "string");
    return lines.length === content.length ? { content: lines, ...times } : undefined;
  }
  if (typeof content !== "string") return undefined;
  const type = typeof mimeType === "string" ? mimeType : undefined;
  const isBytes = encoding === BASE64 || (type !== undefined && !isTextType(type));
  const bytes = isBytes ? decodeBase64(content) : undefined;
  return { content: bytes ?? content, mimeType: type ?? "text/plain", ...times };
}

const PAGE_SIZE = 500;

/** A store that can return the items of exactly one namespace in the order of their keys. */
type OrderedStore = Pick<StoredMemories, "itemsBetween">;

/** Items of an ordered store that are read in one turn of the event loop, at most. */
const PAGE = 256;

/** The first key behind all keys with this prefix, which ends in a slash. */
const behind = (prefix: string): string => `${prefix.slice(0, -1)}0`;

function* itemFiles(items: readonly Item[]): Generator<[string, FileData]> {
  for (const { key, value } of items) {
    const data = fromItem(value);
    if (data !== undefined) yield [key, data];
  }
}

/** The namespace of the files in a store, or a function that returns it for each call. */
export type StoreNamespace = readonly string[] | ((runtime: Partial<BackendRuntime>) => readonly string[]);

/** @throws ConfigurationError for an invalid namespace, and for parts for which a run has no value. */
function checkNamespace(given: readonly string[]): string[] {
  const parts: readonly unknown[] = Array.isArray(given) ? given : [];
  const missing = parts.findIndex((part) => typeof part !== "string");
  if (missing >= 0) throw badNamespace(fill(texts.noNamespacePart, missing + 1, String(parts[missing])));
  const isUsable = (part: unknown): boolean => /^[A-Za-z0-9_.@+:~-]+$/.test(String(part));
  if (parts.length === 0 || !parts.every(isUsable)) throw unusableNamespace(given);
  return [...given];
}

/** Many stores refuse periods and colons, too, but only they can know. */
const unusableNamespace = (namespace: readonly string[]): ConfigurationError =>
  badNamespace(fill(texts.unusableNamespace, JSON.stringify(namespace)));

const badNamespace = (problem: string) => new ConfigurationError("STORE_NAMESPACE", problem);

const isVersioned = (store: object): store is Pick<StoredMemories, "getVersioned" | "putIf"> =>
  "getVersioned" in store && "putIf" in store;

/** A value of another program, which would be lost. */
class NoFileError extends Error {}

class StoreFiles implements FileStore {
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
    const { content } = data;
    // JSON, with bytes as base64, which `encoding` marks.
    const value: Record<string, unknown> =
      Array.isArray(content) || typeof content === "string"
        ? { ...data }
        : { ...data, content: Buffer.from(content).toString("base64"), encoding: BASE64 };
    const now = await this.#item(path);
    if (now !== null && fromItem(now.value) === undefined) throw new NoFileError();
    const isExpected =
      expected === "any" || (expected === "absent" ? now === null : now?.version === expected.version);
    if (!isExpected) return false;
    if (isVersioned(this.#store))
      return (await this.#store.putIf(this.#namespace, path, value, now?.version ?? null)) !== undefined;
    await this.#store.put(this.#namespace, path, value);
    return true;
  }

  async remove(path: string): Promise<void> {
    await this.#store.delete(this.#namespace, path);
  }

  async *list(path: string, { shallow, containing }: ListOptions = {}): AsyncGenerator<ListedFile> {
    const own = await this.get(path);
    if (own !== undefined) {
      yield { ...toFileInfo(path, own.data), data: own.data };
      return;
    }
    const files = ((store: object): store is OrderedStore => "itemsBetween" in store)(this.#store)
      ? this.#inOrder(this.#store, path, { shallow, containing })
      : this.#all();
    for await (const [file, data] of files) {
      if (isAtOrBelow(file, path)) yield { ...toFileInfo(file, data), data };
    }
  }

  explain(thrown: unknown): string {
    if (thrown instanceof Error && thrown.name === "InvalidNamespaceError")
      throw unusableNamespace(this.#namespace);
    if (thrown instanceof NoFileError)
      return "the store has a value of another program there, which is not a file; choose another path";
    return "the store failed; try again";
  }

  /**
   * Yields every file of exactly this namespace. Skips namespaces with a common beginning, which a search includes, and
   * keys that appear on two pages because the store changed in between.
   */
  async *#all(): AsyncGenerator<[string, FileData]> {
    const own = JSON.stringify(this.#namespace);
    const seen = new Set<string>();
    for (let offset = 0; ; offset += PAGE_SIZE) {
      const page = await this.#store.search(this.#namespace, { limit: PAGE_SIZE, offset });
      const items = page.filter(({ key, namespace }) => JSON.stringify(namespace) === own && !seen.has(key));
      for (const { key } of items) seen.add(key);
      yield* itemFiles(items);
      if (page.length < PAGE_SIZE) return;
    }
  }

  /** Yields the files below a path. With `shallow`, reads few files of each folder but at least one. */
  async *#inOrder(
    store: OrderedStore,
    path: string,
    { shallow = false, containing }: ListOptions,
  ): AsyncGenerator<[string, FileData]> {
    const to = behind(withSlash(path));
    // A search decodes bytes first.
    const texts = containing === undefined ? {} : { containing: [containing, BASE64] };
    const skip = (item: Item) => (fromItem(item.value) ? subfolder(path, item.key) : undefined);
    for (let from = withSlash(path); ;) {
      const page = { from, to, limit: PAGE, ...texts, ...(shallow ? { skip } : {}) };
      const items = await store.itemsBetween(this.#namespace, page);
      yield* itemFiles(items);
      const last = items.at(-1);
      if (last === undefined || (!shallow && items.length < PAGE)) return;
      const folder = shallow ? skip(last) : undefined;
      // The next possible key, because no path contains NUL.
      from = folder === undefined ? `${last.key}\0` : behind(folder);
      await nextTurn();
    }
  }

  /** The item at a key with its version, or else with a mark made of its content and its time. */
  async #item(path: string): Promise<(Item & { version: string }) | null> {
    if (isVersioned(this.#store)) return this.#store.getVersioned(this.#namespace, path);
    const item = await this.#store.get(this.#namespace, path);
    // A copy, because some stores keep changing the item that they returned.
    return item && { ...item, version: JSON.stringify([item.updatedAt, item.value]) };
  }
}

export interface StoreBackendOptions extends FileStoreBackendOptions {
  /** Default: the store of the runtime, or of the LangGraph task that calls. */
  store?: BaseStore;
  /** Default `[assistantId, "filesystem"]`, without an assistant `["filesystem"]`. */
  namespace?: StoreNamespace;
}

/**
 * Files in a LangGraph `BaseStore`, shared by all threads: one item per file, the path is its key.
 *
 * An operation on one file touches one item, so it does not notice a path that is also a folder. Writes to one path
 * are serialized in this process. Between processes they are compare-and-set if the store can do that; otherwise the
 * item is read again just before the put.
 */
export class StoreBackend extends FileStoreBackend {
  readonly #runtime: BackendRuntime | undefined;
  readonly #options: StoreBackendOptions;

  /** Throws `ConfigurationError` for a list of parts that is not a valid namespace. */
  constructor(
    runtimeOrOptions?: BackendRuntime | StateAndStore | StoreBackendOptions,
    options?: StoreBackendOptions,
  ) {
    const own = { store: "anything", namespace: "anything" } as const;
    const table = { ...own, fileFormat: "a text", clock: "a function" } as const;
    const split = splitArguments("StoreBackend", table, runtimeOrOptions, options);
    super(() => {
      const runtime = split.runtime ?? ambientRuntime();
      const store = split.options.store ?? runtime?.store;
      if (store === undefined) return errors.storeMissing();
      const { namespace } = split.options;
      const chosen = typeof namespace === "function" ? namespace(runtime ?? {}) : namespace;
      const assistant = runtime?.assistantId;
      const usual = assistant === undefined ? ["filesystem"] : [assistant, "filesystem"];
      // Unwraps a store. LangGraph passes nodes a wrapper that collects calls for `batch` and hides
      // everything beyond `BaseStore`, such as an order of keys.
      return new StoreFiles(isBatched(store) ? store.store : store, checkNamespace(chosen ?? usual));
    }, split.options);
    if (typeof split.options.namespace === "object") checkNamespace(split.options.namespace);
    this.#runtime = split.runtime;
    this.#options = split.options;
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return this.#runtime === undefined ? new StoreBackend(runtime, this.#options) : this;
  }
}
