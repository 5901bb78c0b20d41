import type { Database } from "./database.ts";
import type { Rewrite } from "./migration.ts";

/*
 * Threads have the sources of these functions: they use each other, and nothing else of a module. The sizes, and
 * the form of what they store, are those of the step they belong to; see `store-parts.ts`.
 */

/** What is damaged stays as it is, as whoever reads it is told. */
function dividedItem(json: string): { json: string; pieces: string[] } {
  const pieces: string[] = [];
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { json, pieces };
  }
  const light = JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "string" || (part.length < 65_536 && !part.startsWith("deepagent-parts:")))
      return part;
    const first = pieces.length;
    for (let at = 0; at < part.length; at += 131_072)
      pieces.push(JSON.stringify(part.slice(at, at + 131_072)));
    return `deepagent-parts:${first}-${pieces.length}`;
  });
  return { json: light, pieces };
}

/** What the triggers of an update see to stays as it is: the words of an item, and what they mean. */
function withoutTriggers(database: Database, work: () => void): void {
  const triggers = database
    .prepare<[], { name: string; sql: string }>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'store_items' AND sql LIKE '% AFTER UPDATE OF %'",
    )
    .all();
  for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`);
  work();
  for (const { sql } of triggers) database.exec(sql);
}

/** Long texts of items that were stored whole. */
export const DIVIDE_ITEMS: Rewrite = {
  rewrite: function divideItems(database: Database): void {
    const ids = database
      .prepare<[], number>("SELECT id FROM store_items WHERE parts IS NULL AND octet_length(value) > 65536")
      .pluck()
      .all();
    const read = database.prepare<[number], string>("SELECT value FROM store_items WHERE id = ?").pluck();
    // The index reads the text of such an item from there: as much as it read before.
    const write = database.prepare(
      "UPDATE store_items SET text = substr(body, 1, 200000), value = ?, parts = ? WHERE id = ?",
    );
    const begin = database
      .prepare<[], number>("INSERT INTO store_values (unused_since) VALUES (NULL) RETURNING id")
      .pluck();
    const put = database.prepare("INSERT INTO store_parts (value, number, text) VALUES (?, ?, ?)");
    withoutTriggers(database, () => {
      for (const id of ids) {
        const { json, pieces } = dividedItem(read.get(id) ?? "{}");
        if (pieces.length === 0) continue;
        const parts = begin.get();
        for (const [number, piece] of pieces.entries()) put.run(parts, number, piece);
        write.run(json, parts, id);
      }
    });
  },
  uses: [dividedItem, withoutTriggers],
};
