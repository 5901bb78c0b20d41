/** Memories in Postgres: the program makes a `tsvector` of each item's words. */
import type { IndexedText, MemoryDatabase, Ranked } from "../../memories/contracts.ts";
import { IS_THERE } from "../../memories/items.ts";
import { encodeNamespace } from "../../memories/namespaces.ts";
import { searchedText, fold, gramRuns, tokenize } from "../../memories/text-query.ts";
import { all } from "../../../runs/sql/steps.ts";
import { type Access, postgresEngine } from "../engine.ts";

/** Opens the memory tables of a schema that has the migrations of `POSTGRES_STORE`. */
export function memoriesInPostgres(access: Access): MemoryDatabase {
  const engine = postgresEngine(access);
  return {
    engine,
    within: (namespace) => memoriesInPostgres(access.within(encodeNamespace(namespace))),
    columns: { body: "@body", words: "@words::tsvector" },
    isSearched: "body IS NOT NULL",
    contains: { sql: (parameter) => `strpos(value, ${parameter}) > 0`, value: (text) => text },
    index: async (puts) =>
      puts.map(({ key, value, index }): IndexedText => {
        const body = index === false || value === null ? null : searchedText(value, index);
        return { values: { body, words: body === null ? null : wordVector(key, body) } };
      }),
    byWords: async (range, text, page) => {
      const words = wordQuery(text);
      if (words === "") return [];
      const sql = `
SELECT id, ts_rank(words, query) AS score FROM store_items, to_tsquery('simple', @words) AS query
WHERE namespace >= @from AND namespace < @to AND ${IS_THERE} AND words @@ query
ORDER BY score DESC, namespace, key LIMIT @limit`;
      return engine.read(() => all<Ranked>(sql, { ...range, ...page, words }));
    },
  };
}

/** Words of one query. */
const MOST_WORDS = 32;

const quotedLexeme = (word: string): string => `'${word.replace(/['\\]/g, "$&$&")}'`;

const lexemes = (text: string): string[] =>
  tokenize(fold(text.normalize("NFC"))).map((word) => word.toLowerCase().slice(0, 200));

/** The words of a key, which weigh more, and of a text; of scripts without spaces the pairs of characters. */
export function wordVector(key: string, text: string): string {
  const places = new Map<string, string[]>();
  let place = 0;
  const add = (word: string, weight: string): void => {
    place = Math.min(place + 1, 16_383);
    const known = places.get(word) ?? [];
    if (known.length < 100) places.set(word, [...known, `${place}${weight}`]);
  };
  for (const word of lexemes(key)) add(word, "A");
  for (const word of lexemes(text)) add(word, "");
  for (const { pairs, last } of gramRuns(`${key}\n${text}`)) {
    // Behind a gap, so that no phrase matches across two runs.
    place += 1;
    // The last character begins no pair, and is found by itself.
    for (const gram of [...pairs, last]) add(gram, "");
  }
  let bytes = 0;
  const parts: string[] = [];
  for (const [word, at] of places) {
    const part = `${quotedLexeme(word)}:${at.join(",")}`;
    bytes += Buffer.byteLength(part);
    // All of them together may have a megabyte.
    if (bytes > 900_000) break;
    parts.push(part);
  }
  return parts.join(" ");
}

/** A query for any word of the text, or any that begins with one; empty when it has no words. */
function wordQuery(query: string): string {
  const terms = lexemes(query).map((word) =>
    // Shorter words match whole words only, not the beginning of longer ones.
    word.length < 3 ? quotedLexeme(word) : `${quotedLexeme(word)}:*`,
  );
  const phrases = gramRuns(query).flatMap(({ pairs, last }) =>
    pairs.length === 0
      ? [`${quotedLexeme(last)}:*`]
      : [`(${pairs.map(quotedLexeme).join(" <-> ")})`, ...pairs.map(quotedLexeme)],
  );
  return [...new Set([...terms.slice(0, MOST_WORDS), ...phrases.slice(0, MOST_WORDS)])].join(" | ");
}
