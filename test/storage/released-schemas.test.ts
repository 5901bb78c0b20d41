import { migrate } from "../../src/storage/sqlite/migrations.ts";
import type { Migration } from "../../src/runs/sql/sql-files.ts";
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import { CHECKPOINT_MIGRATIONS } from "../../src/storage/sqlite/checkpoints/schema.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { STORE_MIGRATIONS } from "../../src/storage/sqlite/memories/database.ts";

/** A digest of the tables, indexes, views and triggers that each version of a component has. */
function versionsOf(component: string, migrations: readonly Migration[]): string[] {
  return migrations.map((_step, index) => {
    const database = openDatabase(":memory:");
    migrate(database, component, migrations.slice(0, index + 1));
    const schema = database
      .prepare<[], string>("SELECT name || sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
      .pluck()
      .all();
    database.close();
    const digest = createHash("sha256").update(schema.join("\n").replaceAll(/\s+/g, " "));
    return `${index + 1} ${digest.digest("hex").slice(0, 12)}`;
  });
}

// From the first release on: a line is added for each new step, and none is ever changed.
it("no step that a database may have been made by changes", () => {
  expect({
    runs: versionsOf("runs", RUN_MIGRATIONS),
    store: versionsOf("store", STORE_MIGRATIONS),
    checkpoints: versionsOf("checkpoints", CHECKPOINT_MIGRATIONS),
  }).toMatchInlineSnapshot(`
    {
      "checkpoints": [
        "1 4b55d3eff00e",
        "2 3260c49d0cbc",
      ],
      "runs": [
        "1 c9ae1b381692",
        "2 6ca0ab266e87",
        "3 5e9dc45906cf",
        "4 e4294ce9d1d6",
        "5 d411fbbab3bf",
        "6 1261e424bc23",
        "7 21c77d5d71e8",
        "8 1ce54c71f4c5",
        "9 38ed47ad7890",
        "10 45eb17a14547",
        "11 a96cac072cd2",
        "12 e4c2210b97f0",
        "13 934117278cef",
        "14 de2ee6c27611",
        "15 7d3ed4dfb51a",
        "16 5982317316ef",
        "17 6cffeab30858",
        "18 8ea128fef6aa",
        "19 3577d5ec3f64",
        "20 82448b6756bd",
        "21 299223f351d7",
      ],
      "store": [
        "1 4b55d3eff00e",
        "2 30742d555d0b",
      ],
    }
  `);
});
