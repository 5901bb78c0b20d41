/** Memories in Postgres: the program makes a `tsvector` of each item's words. */
import type { IndexedText, MemoryDatabase, Ranked } from "../../memories/contracts.ts";
import { IS_THERE } from "../../memories/items.ts";
import { encodeNamespace } from "../../memories/namespaces.ts";
import { searchedText } from "../../memories/text-query.ts";
import { all } from "../../sql/steps.ts";
import type { Access } from "../access.ts";
import { postgresEngine } from "../engine.ts";
import { wordQuery, wordVector } from "./words.ts";

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
