import { fuse } from "../../memories/passages.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { NamespaceRange } from "../../memories/namespaces.ts";
import { type TextQuery, fold } from "../../memories/text-query.ts";
import type { ItemPosition, ItemRow, MatchRow, StoreStatements, TextIndex } from "./items.ts";

/** Rows looked at between two turns of the event loop. */
const ROWS_PER_TURN = 128;
/** Matches ranked between two turns. */
const MATCHES_PER_TURN = 500;
/** Matches that are compared with each other. A word with more matches says little about any of them. */
const COMPARED = 500;
/** Frequent words that count in the order of matches: each takes a look at all that have it. */
const FREQUENT_WORDS = 2;

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
 * The items of the range that contain any word of the query, best first. When there is none, those with all
 * of its words as parts of others.
 */
export async function rankItems(
  sql: StoreStatements,
  range: NamespaceRange,
  { terms, grams, words }: TextQuery,
  { limit, now }: { limit: number; now: number },
): Promise<RankedItem[]> {
  const wanted = Math.max(limit, COMPARED);
  const byWords = await first(wanted, bestFirst(sql.words, terms, range, now));
  const byGrams = await first(wanted, bestFirst(sql.grams, grams, range, now));
  const ranked = byGrams.length === 0 ? byWords : fuse([byWords, byGrams]);
  if (ranked.length > 0 || words.length === 0) return ranked.slice(0, limit);
  const readAfter = (after: ItemPosition) =>
    sql.textsAfter.all({ ...after, to: range.to, limit: ROWS_PER_TURN, now });
  for await (const { id, text } of inPieces(readAfter, range)) {
    if (ranked.length >= limit) break;
    const folded = fold(text);
    if (words.every((word) => folded.includes(word))) ranked.push({ id, score: 0 });
  }
  return ranked;
}

/**
 * The items that match any of the terms: first those with one that is not frequent, then the others; of very
 * many matches the newest first. They are compared `COMPARED` at a time, so that a word of every item costs
 * no more than a rare one. Scores follow the order.
 */
async function* bestFirst(
  index: TextIndex,
  terms: readonly string[],
  range: NamespaceRange,
  now: number,
): AsyncGenerator<RankedItem> {
  const known = new Set<number>();
  let lowest = Infinity;
  for (const match of await expressions(index, terms)) {
    for await (const rows of compared(index, match, range, now)) {
      for (const { id, rank } of rows.sort(byRank)) {
        if (known.has(id)) continue;
        known.add(id);
        lowest = Math.min(lowest, -rank);
        yield { id, score: lowest };
      }
    }
  }
}

async function expressions(index: TextIndex, terms: readonly string[]): Promise<string[]> {
  const rare: string[] = [];
  const frequent: string[] = [];
  for (const term of terms) {
    const count = index.count.get({ match: term, limit: COMPARED }) ?? 0;
    (count < COMPARED ? rare : frequent).push(term);
    if (terms.length > 1) await nextTurn();
  }
  const counting = frequent.slice(0, FREQUENT_WORDS);
  if (rare.length === 0) return counting.length === 0 ? [] : [anyOf(counting)];
  if (counting.length === 0) return [anyOf(rare)];
  return [`(${anyOf(rare)}) AND (${anyOf([...rare, ...counting])})`, anyOf(counting)];
}

const anyOf = (terms: readonly string[]): string => terms.join(" OR ");

/** The matches of the range, newest first, in groups that are compared with each other. */
async function* compared(
  index: TextIndex,
  match: string,
  range: NamespaceRange,
  now: number,
): AsyncGenerator<MatchRow[]> {
  let group: MatchRow[] = [];
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const rows = index.newest.all({ ...range, match, before, limit: MATCHES_PER_TURN, now });
    group.push(...rows.filter(({ isThere }) => isThere));
    const last = rows.at(-1);
    if (last === undefined || group.length >= COMPARED) {
      if (group.length > 0) yield group;
      if (last === undefined) return;
      group = [];
    }
    before = last.id;
    await nextTurn();
  }
}

function byRank(a: MatchRow, b: MatchRow): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  return a.namespace < b.namespace || (a.namespace === b.namespace && a.key < b.key) ? -1 : 1;
}

async function first<T>(count: number, items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) {
    found.push(item);
    if (found.length >= count) break;
  }
  return found;
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
    if (last === undefined) return;
    after = { namespace: last.namespace, key: last.key };
    await nextTurn();
  }
}
