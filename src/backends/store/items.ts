import type { BaseStore } from "@langchain/langgraph-checkpoint";
import type { FileData } from "../backend.ts";
import { decodeBase64, isTextType } from "../mime.ts";

/**
 * LangGraph hands the store to a node in a wrapper that collects calls for `batch` and offers nothing
 * beyond `BaseStore`. What the store itself offers, such as an order of keys, is used all the same.
 */
export const unbatched = (store: BaseStore): BaseStore => (isBatched(store) ? store.store : store);

const isBatched = (store: object): store is { store: BaseStore } =>
  "lg_name" in store && store.lg_name === "AsyncBatchedStore" && "store" in store;

/** How file data is kept as a store item: JSON, bytes as base64 with `encoding` saying so. */
export function toItem(data: FileData): Record<string, unknown> {
  if (Array.isArray(data.content) || typeof data.content === "string") return { ...data };
  return { ...data, content: Buffer.from(data.content).toString("base64"), encoding: "base64" };
}

/** The file an item holds; undefined when the item is something else. */
export function fromItem(value: Record<string, unknown>): FileData | undefined {
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
  const isBytes = encoding === "base64" || (type !== undefined && !isTextType(type));
  const bytes = isBytes ? decodeBase64(content) : undefined;
  return { content: bytes ?? content, mimeType: type ?? "text/plain", ...times };
}

/** Items asked for at a time; BaseStore pages by offset. */
const PAGE_SIZE = 500;

/**
 * Every file of exactly this namespace. A search also returns namespaces that merely start alike; a key that
 * appears on two pages, because the store changed in between, is given once.
 */
export async function* filesOf(store: BaseStore, namespace: string[]): AsyncGenerator<[string, FileData]> {
  const own = JSON.stringify(namespace);
  const seen = new Set<string>();
  for (let offset = 0; ; offset += PAGE_SIZE) {
    const page = await store.search(namespace, { limit: PAGE_SIZE, offset });
    for (const item of page) {
      if (JSON.stringify(item.namespace) !== own || seen.has(item.key)) continue;
      seen.add(item.key);
      const data = fromItem(item.value);
      if (data !== undefined) yield [item.key, data];
    }
    if (page.length < PAGE_SIZE) return;
  }
}
