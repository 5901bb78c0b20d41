import type { ItemPosition, ItemRow, NamespaceRange, StoreStatements } from "./store-sql.ts";
import { fold } from "./store-text.ts";
import type { TextQuery } from "./store-text.ts";

/** Rows looked at between two turns of the event loop. */
const ROWS_PER_TURN = 256;

/** An item found by its words; higher scores are better, 0 is a match inside a word. */
export interface RankedItem {
  id: number;
  score: number;
}

/** Every item of the range in order, read in pieces so that a long range does not hold up other work. */
export async function* itemsOf(
  sql: StoreStatements,
  range: NamespaceRange,
  now: number,
): AsyncGenerator<ItemRow> {
  const readAfter = (after: ItemPosition) =>
    sql.itemsAfter.all({ ...after, to: range.to, limit: ROWS_PER_TURN, now });
  yield* inPieces(readAfter, range);
}

/**
 * The items of the range that contain any word of the query, best first. Words in scripts without spaces,
 * and all words together when none was found, are also looked for as parts of the text.
 */
export async function rankItems(
  sql: StoreStatements,
  range: NamespaceRange,
  query: TextQuery,
  { limit, now }: { limit: number; now: number },
): Promise<RankedItem[]> {
  const { match, parts, words } = query;
  const rows = match === undefined ? [] : sql.ranked.all({ ...range, match, limit, now });
  const ranked = rows.map(({ id, rank }): RankedItem => ({ id, score: -rank }));
  if (words.length === 0 || (ranked.length > 0 && parts.length === 0)) return ranked;
  const known = new Set(ranked.map(({ id }) => id));
  const readAfter = (after: ItemPosition) =>
    sql.textsAfter.all({ ...after, to: range.to, limit: ROWS_PER_TURN, now });
  for await (const { id, text } of inPieces(readAfter, range)) {
    if (ranked.length >= limit) break;
    if (known.has(id)) continue;
    const folded = fold(text);
    const contains = (word: string) => folded.includes(word);
    if (parts.some(contains) || (known.size === 0 && words.every(contains))) ranked.push({ id, score: 0 });
  }
  return ranked;
}

async function* inPieces<Row extends ItemPosition>(
  read: (after: ItemPosition) => Row[],
  range: NamespaceRange,
): AsyncGenerator<Row> {
  // The range starts with a comma-terminated part; without the comma the text comes before all of it.
  let after: ItemPosition = { namespace: range.from.slice(0, -1), key: "" };
  for (;;) {
    const rows = read(after);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS_PER_TURN) return;
    after = { namespace: last.namespace, key: last.key };
    await new Promise(setImmediate);
  }
}
