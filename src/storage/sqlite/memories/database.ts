/** Memories in SQLite: full-text indexes of words, and of pairs of characters for scripts without spaces. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { IndexedText, MemoryDatabase } from "../../memories/contracts.ts";
import { IS_THERE, type ItemPosition } from "../../memories/items.ts";
import type { NamespaceRange } from "../../memories/namespaces.ts";
import { fuse } from "../../memories/passages.ts";
import { characterPairs, parseQuery, searchedText, textToIndex } from "../../memories/text-query.ts";
import { type Engine, all, change, first } from "../../../runs/sql/steps.ts";
import type { Database } from "../database.ts";
import { sqliteEngine } from "../engine.ts";
import { type Migration, readMigrations } from "../../../runs/sql/sql-files.ts";
import tables from "./tables.sql" with { type: "text" };

/** The tables of memories in `database`, which `STORE_MIGRATIONS` have migrated. */
export function memoriesInSqlite(database: Database): MemoryDatabase {
  const engine = sqliteEngine(database);
  const memories: MemoryDatabase = {
    engine,
    within: () => memories,
    columns: { text: "@text", indexed: "@indexed" },
    isSearched: "indexed",
    // It takes two thirds of the time of `instr`.
    contains: {
      sql: (parameter) => `value GLOB ${parameter}`,
      value: (text) => `*${text.replaceAll(/[*?[]/g, "[$&]")}*`,
    },
    index: async (puts) => puts.map(({ key, value, index }) => indexed(key, value ?? {}, index)),
    byWords: async (range, query, page) => {
      const { terms, grams } = parseQuery(query);
      const byWords = await bestFirst(engine, WORDS, terms, { ...range, ...page });
      const byGrams = await bestFirst(engine, GRAMS, grams, { ...range, ...page });
      const found = byGrams.length === 0 ? byWords : fuse([byWords, byGrams]);
      return found.slice(0, page.limit);
    },
  };
  return memories;
}

function indexed(key: string, value: Record<string, unknown>, index?: false | string[]): IndexedText {
  // The triggers write the index of words, which reads the text in `content` from there.
  if (index === false) return { values: { text: textToIndex(value), indexed: 0 } };
  const grams = characterPairs(`${key}\n${searchedText(value, index)}`);
  return {
    values: { text: textToIndex(value, index), indexed: 1 },
    *after(id) {
      if (grams !== "")
        yield* change("INSERT INTO store_grams (rowid, grams) VALUES (@id, @grams)", { id, grams });
    },
  };
}

/** Matches that are compared with each other. A word with more matches hardly ranks any of them. */
const COMPARED_MATCHES = 500;

interface TextIndex {
  count: string;
  newest: string;
}

const textIndex = (table: string, rank: string): TextIndex => ({
  count: `SELECT count(*) AS found FROM (SELECT 1 FROM ${table} WHERE ${table} MATCH @match LIMIT ${COMPARED_MATCHES})`,
  newest: `
SELECT i.id, i.namespace, i.key, f.rank, i.namespace >= @from AND i.namespace < @to AND ${IS_THERE} AS isThere
FROM (
  SELECT rowid AS id, ${rank} AS rank FROM ${table} WHERE ${table} MATCH @match AND rowid < @before
  ORDER BY rowid DESC LIMIT ${COMPARED_MATCHES}
) AS f JOIN store_items AS i ON i.id = f.id ORDER BY f.id DESC`,
});
const WORDS = textIndex("store_text", "bm25(store_text, 2.0, 1.0)");
const GRAMS = textIndex("store_grams", "bm25(store_grams)");

interface MatchRow extends ItemPosition {
  id: number;
  /** Smaller for better matches. */
  rank: number;
  /** True if it is in the searched range and has not expired. */
  isThere: 0 | 1;
}

/**
 * The items that match any of the terms: first those with one that is not frequent, then the others; of very many
 * matches the newest first. They are compared `COMPARED_MATCHES` at a time, so that a word of every item costs no more than a
 * rare one. Scores follow the order.
 */
async function bestFirst(
  engine: Engine,
  index: TextIndex,
  terms: readonly string[],
  page: NamespaceRange & { limit: number; now: number },
): Promise<{ id: number; score: number }[]> {
  const wanted = Math.max(page.limit, COMPARED_MATCHES);
  const found = new Map<number, number>();
  let lowest = Infinity;
  for (const match of await expressions(engine, index, terms)) {
    for await (const group of compared(engine, index, { ...page, match })) {
      for (const { id, rank } of group.sort(
        (a, b) =>
          a.rank - b.rank ||
          (a.namespace < b.namespace || (a.namespace === b.namespace && a.key < b.key) ? -1 : 1),
      )) {
        if (found.has(id)) continue;
        lowest = Math.min(lowest, -rank);
        found.set(id, lowest);
      }
      if (found.size >= wanted) break;
    }
    if (found.size >= wanted) break;
  }
  return [...found].map(([id, score]) => ({ id, score }));
}

async function expressions(engine: Engine, index: TextIndex, terms: readonly string[]): Promise<string[]> {
  if (terms.length < 2) return [...terms];
  const rare: string[] = [];
  const frequent: string[] = [];
  for (const match of terms) {
    const row = await engine.read(() => first<{ found: number }>(index.count, { match }));
    ((row?.found ?? 0) < COMPARED_MATCHES ? rare : frequent).push(match);
    await nextTurn();
  }
  // Each frequent word takes a look at all that have it, so two of them count.
  const counting = frequent.slice(0, 2);
  if (rare.length === 0) return [anyTerm(counting)];
  if (counting.length === 0) return [anyTerm(rare)];
  return [`(${anyTerm(rare)}) AND (${anyTerm([...rare, ...counting])})`, anyTerm(counting)];
}

const anyTerm = (terms: readonly string[]): string => terms.join(" OR ");

/** The matches of the range, newest first, in groups that are compared with each other. */
async function* compared(
  engine: Engine,
  { newest }: TextIndex,
  page: NamespaceRange & { match: string; now: number },
): AsyncGenerator<MatchRow[]> {
  let group: MatchRow[] = [];
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const rows = await engine.read(() => all<MatchRow>(newest, { ...page, before }));
    group.push(...rows.filter(({ isThere }) => isThere));
    const last = rows.length < COMPARED_MATCHES ? undefined : rows.at(-1);
    if (last === undefined || group.length >= COMPARED_MATCHES) {
      yield group;
      group = [];
    }
    if (last === undefined) return;
    before = last.id;
    await nextTurn();
  }
}

export const STORE_MIGRATIONS: readonly Migration[] = readMigrations(tables);
