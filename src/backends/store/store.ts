import type { BaseStore } from "@langchain/langgraph-checkpoint";
import type { Clock } from "../../core/clock.ts";
import type { OptionTable } from "../../core/options.ts";
import type { Backend, BackendRuntime } from "../backend.ts";
import { ambientRuntime } from "../ambient.ts";
import { type BackendFailure, storeMissing } from "../errors.ts";
import type { FileFormat } from "../file-data.ts";
import { type FileStore, FileStoreBackend } from "../file-store.ts";
import { bindRuntime, splitArguments, type StateAndStore } from "../runtime.ts";
import { StoreFiles } from "./files.ts";
import { unbatched } from "./items.ts";
import { checkNamespace, namespaceOf, type StoreNamespace } from "./namespace.ts";

export interface StoreBackendOptions {
  /** Default: the store of the runtime, or of the LangGraph task that calls. */
  store?: BaseStore;
  /** Default `[assistantId, "filesystem"]`, without an assistant `["filesystem"]`. */
  namespace?: StoreNamespace;
  /** `v1` keeps lines, for old readers. Both are read. Default `v2`. */
  fileFormat?: FileFormat;
  clock?: Clock;
}

const OPTIONS: OptionTable<StoreBackendOptions> = {
  store: "anything",
  namespace: "anything",
  fileFormat: "a text",
  clock: "a function",
};

/**
 * Files in a LangGraph `BaseStore`, shared by all threads: one item per file, the path is its key.
 *
 * An operation on one file touches one item, so a path that is also the directory of others is not
 * noticed. Writes to one path are serialized in this process; against other processes they are
 * compare-and-set where the store offers it, else the item is looked at again just before it is put.
 */
export class StoreBackend extends FileStoreBackend {
  readonly #runtime: BackendRuntime | undefined;
  readonly #options: StoreBackendOptions;

  /** Throws `ConfigurationError` for a list of parts that is no namespace. */
  constructor(
    runtimeOrOptions?: BackendRuntime | StateAndStore | StoreBackendOptions,
    options?: StoreBackendOptions,
  ) {
    const split = splitArguments("StoreBackend", OPTIONS, runtimeOrOptions, options);
    super(() => openFiles(split.runtime ?? ambientRuntime(), split.options), split.options);
    if (typeof split.options.namespace === "object") checkNamespace(split.options.namespace);
    this.#runtime = split.runtime;
    this.#options = split.options;
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return this.#runtime === undefined ? new StoreBackend(runtime, this.#options) : this;
  }
}

function openFiles(
  runtime: BackendRuntime | undefined,
  options: StoreBackendOptions,
): FileStore | BackendFailure {
  const store = options.store ?? runtime?.store;
  if (store === undefined) return storeMissing();
  return new StoreFiles(unbatched(store), namespaceOf(options.namespace, runtime));
}
