import { type Migration, migrate } from "../../src/storage/sqlite/migrations.ts";
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { RUN_MIGRATIONS } from "../../src/storage/sqlite/runs/schema.ts";
import { CHECKPOINT_MIGRATIONS } from "../../src/storage/sqlite/checkpoints/schema.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { STORE_MIGRATIONS } from "../../src/storage/sqlite/memories/schema.ts";

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

// Databases of these versions exist: a line is added for each new step, and none is ever changed.
it("no step that a database may have been made by changes", () => {
  expect({
    runs: versionsOf("runs", RUN_MIGRATIONS),
    store: versionsOf("store", STORE_MIGRATIONS),
    checkpoints: versionsOf("checkpoints", CHECKPOINT_MIGRATIONS),
  }).toMatchInlineSnapshot(`
    {
      "checkpoints": [
        "1 e07e7f368fd2",
        "2 f5ca5bd33d54",
        "3 6f99d34b9346",
        "4 8bba44e284c0",
        "5 8bba44e284c0",
      ],
      "runs": [
        "1 d7c9f91b1265",
        "2 3c2d7b1cf573",
        "3 fb696837b10d",
        "4 2d15193e3813",
        "5 15187654e6e4",
        "6 15ec8aa80b4d",
        "7 a340128cfe6a",
        "8 5bcf840b64d5",
        "9 566c8be81aa0",
        "10 baf55d3104a7",
        "11 6db097128e49",
        "12 be7e448d23c3",
        "13 0bbca6502455",
        "14 afb1f1e6f9d1",
        "15 c9ae1b381692",
      ],
      "store": [
        "1 80458e6ccbe1",
        "2 15203a37eff4",
        "3 baef7206b6b2",
        "4 30742d555d0b",
        "5 89f6da53cf25",
        "6 c4d724ae837a",
        "7 c4d724ae837a",
      ],
    }
  `);
});
