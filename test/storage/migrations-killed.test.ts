import { type Migration, migrate, schemaVersion } from "../../src/storage/sqlite/migrations.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { RUN_MIGRATIONS } from "../../src/storage/sqlite/runs/schema.ts";
import { CHECKPOINT_MIGRATIONS } from "../../src/storage/sqlite/checkpoints/schema.ts";
import { type Database, integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { STORE_MIGRATIONS } from "../../src/storage/sqlite/memories/schema.ts";
import { bundleProcess, finish, startProcess } from "./migrate-child.ts";
import { opened, temporaryFolder } from "./support.ts";

interface Component {
  name: string;
  steps: readonly Migration[];
  /** Puts rows into tables of the first version. */
  fill: string;
  /** What is to be there before and after. */
  rows: string;
}

const MANY = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)";

const COMPONENTS: readonly Component[] = [
  {
    name: "runs",
    steps: RUN_MIGRATIONS,
    fill: `
INSERT INTO threads (id, principal, created_at) ${MANY} SELECT 'thr_' || i, 'me', i FROM n;
INSERT INTO runs (id, thread_id, principal, environment, task, status, created_at, updated_at, ended_at,
  runnable_since)
${MANY} SELECT 'run_' || i, 'thr_' || i, 'me', 'here', 'task ' || i, 'completed', i, i, i, i FROM n;`,
    rows: "SELECT number, id, thread_id, principal, task, status, created_at FROM runs ORDER BY number",
  },
  {
    name: "store",
    steps: STORE_MIGRATIONS,
    fill: `
INSERT INTO store_items (namespace, key, value, indexed, version, created_at, updated_at)
${MANY} SELECT 'n', 'key ' || i, '{"content":"a memory"}', 1, 1, i, i FROM n;`,
    rows: `SELECT i.id, i.key, i.value FROM store_text JOIN store_items AS i ON i.id = store_text.rowid
WHERE store_text MATCH 'memory' ORDER BY i.id`,
  },
  {
    name: "checkpoints",
    steps: CHECKPOINT_MIGRATIONS,
    fill: `
INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint, metadata)
${MANY} SELECT 'thr', 'c' || i, 'json', CAST('{}' AS BLOB), CAST('{}' AS BLOB) FROM n;`,
    rows: "SELECT * FROM checkpoints ORDER BY checkpoint_id",
  },
];

// Every step is made in the same way, so one of each component stands for all: the last.
const KILLS = COMPONENTS.map((component) => [component.name, component.steps.length, component] as const);

const schemaOf = (database: Database): unknown[] =>
  database.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();

const folder = mkdtempSync(join(tmpdir(), "storage-test-"));
const bundle = bundleProcess(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each(KILLS)(
  "%s, killed in step %d: nothing of it is there, the backup opens, and the next start makes it",
  async (component, version, { steps, fill, rows }) => {
    const file = join(temporaryFolder(), "data.db");
    const before = openDatabase(file);
    migrate(before, component, steps.slice(0, 1));
    before.exec(fill);
    migrate(before, component, steps.slice(0, version - 1));
    const [kept, schema] = [before.prepare(rows).all(), schemaOf(before)];
    expect(kept).toHaveLength(500);
    before.close();

    const killed = await startProcess(bundle, file, 0, { component, killedIn: version });
    expect(await finish(killed)).toBeNull();
    for (const path of [file, `${file}.${component}-v${version - 1}.backup`]) {
      const database = openDatabase(path);
      expect([schemaVersion(database, component), integrityProblems(database)]).toEqual([version - 1, []]);
      expect(schemaOf(database)).toEqual(schema);
      expect(database.prepare(rows).all()).toEqual(kept);
      database.close();
    }
    expect(await finish(await startProcess(bundle, file, 0, { component }))).toBe(0);
    const after = opened(file);
    expect([schemaVersion(after, component), integrityProblems(after)]).toEqual([steps.length, []]);
    expect(after.prepare(rows).all()).toEqual(kept);
  },
);
