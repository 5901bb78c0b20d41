import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { fromItem } from "../../backends/store-items.ts";
import type { Principal } from "../../runs/run.ts";
import type { MemoryHit } from "../../runs/service.ts";
import { MEMORIES_MOUNT, memoryNamespace } from "./file-tree.ts";

/** Lines shown around the line that matches best. */
const CONTEXT_LINES = 2;
const MAX_SNIPPET = 1000;

/** The principal's memories that fit the words of `query` best. */
export async function searchMemories(
  store: BaseStore,
  principal: Principal,
  query: string,
  limit: number,
): Promise<MemoryHit[]> {
  const namespace = memoryNamespace(principal);
  const items = await store.search(namespace, { query, limit });
  return items.flatMap((item, index) => {
    const content = fromItem(item.value)?.content;
    if (content === undefined || content instanceof Uint8Array) return [];
    const text = typeof content === "string" ? content : content.join("\n");
    // Without a score the order of the store is what is known.
    const score = item.score ?? 1 / (index + 1);
    return [{ path: MEMORIES_MOUNT + item.key, snippet: snippetOf(text, query), score }];
  });
}

/** The lines around the one that has most words of the query; the beginning when none has any. */
export function snippetOf(text: string, query: string): string {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const lines = text.split("\n");
  let best = { index: 0, count: 0 };
  lines.forEach((line, index) => {
    const lower = line.toLowerCase();
    const count = words.filter((word) => lower.includes(word)).length;
    if (count > best.count) best = { index, count };
  });
  const start = Math.max(best.index - CONTEXT_LINES, 0);
  return lines
    .slice(start, best.index + CONTEXT_LINES + 1)
    .join("\n")
    .trim()
    .slice(0, MAX_SNIPPET);
}
