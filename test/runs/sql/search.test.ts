import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RunFilter } from "../../../src/runs/run.ts";
import type { RunRepository } from "../../../src/runs/sql/repository.ts";
import { storedRuns } from "../../../src/runs/sql/repository.ts";
import { RUN_MIGRATIONS } from "../../../src/runs/sql/schema.ts";
import { type Database, openDatabase } from "../../../src/storage/sqlite/database.ts";
import { sqliteEngine } from "../../../src/storage/sqlite/engine.ts";
import { migrate } from "../../../src/storage/sqlite/migrations.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { attempts } from "../../support/effort.ts";

const ME = "me";
const RUNS = 900;
/** Letters that SQLite, JavaScript and the index could fold or split in different ways, and those with a meaning in SQL. */
const LETTERS = Array.from("aAbBkKzZ 0%_\\\"'*():-^\n\0äÄßſẞéÉe\u0301İıKςΣσøあ漢字한글🙂👩‍👩‍👧\uFFFD");
const letter = fc.constantFrom(...LETTERS);
const text = (maxLength: number) => fc.string({ unit: letter, minLength: 1, maxLength });

interface Seed {
  principal: string;
  task: string;
  name: string | null;
  answer: string | null;
  status: "working" | "completed" | "failed";
  /** Gets another name, or is deleted, after it has ended. */
  later: "stays" | "renamed" | "deleted";
}

const seeds = fc.record<Seed>({
  principal: fc.constantFrom(ME, ME, ME, "you"),
  task: text(12),
  name: fc.option(text(6)),
  answer: fc.option(
    fc.oneof(
      text(40),
      text(4).map((end) => `${"long ".repeat(4200)}${end}`),
    ),
  ),
  status: fc.constantFrom("completed", "completed", "completed", "working", "failed"),
  later: fc.constantFrom("stays", "stays", "stays", "renamed", "deleted"),
});

const stored = fc.sample(seeds, { numRuns: RUNS, seed: 7 });
let database: Database;
let indexed: RunRepository;
let read: RunRepository;

beforeAll(() => {
  database = openDatabase(":memory:");
  // The last step indexes what earlier versions stored.
  migrate(database, "runs", RUN_MIGRATIONS.slice(0, -1));
  store(stored.slice(0, 100), 0);
  migrate(database, "runs", RUN_MIGRATIONS);
  store(stored.slice(100), 100);
  indexed = sqliteRuns(database);
  read = storedRuns(sqliteEngine(database), {
    prune: (...args) => indexed.prune(...args),
    storedBytes: async () => 0,
    assertWritable: async () => undefined,
    watchOthers: (...args) => indexed.watch(...args),
  });
});
afterAll(() => database.close());

function store(some: readonly Seed[], first: number): void {
  const thread = database.prepare("INSERT INTO threads (id, principal, created_at) VALUES (?, ?, 1)");
  const run = database.prepare(`INSERT INTO runs (id, thread_id, principal, environment, task, name, status,
    created_at, updated_at, runnable_since) VALUES (?, ?, ?, 'e', ?, ?, 'working', 1, 1, 1)`);
  const answer = database.prepare("UPDATE runs SET answer = ? WHERE id = ?");
  const end = database.prepare("UPDATE runs SET status = ?, ended_at = 2 WHERE id = ?");
  const rename = database.prepare("UPDATE runs SET name = ? WHERE id = ?");
  const remove = database.prepare("DELETE FROM runs WHERE id = ?");
  for (const [at, seed] of some.entries()) {
    const id = `run_${first + at}`;
    thread.run(`thr_${id}`, seed.principal);
    run.run(id, `thr_${id}`, seed.principal, seed.task, seed.name);
    answer.run(seed.answer, id);
    if (seed.status !== "working") end.run(seed.status, id);
    if (seed.later === "renamed") rename.run(seed.name === null ? `${seed.task}あ` : null, id);
    if (seed.later === "deleted" && seed.status !== "working") remove.run(id);
  }
}

/** One statement over all runs. */
function plainly({ text: given = "", status, tasksOnly = false }: RunFilter, limit: number, before?: string) {
  const like = (one: string): string => `%${one.replace(/[\\%_]/g, "\\$&")}%`;
  const columns = ["task", "name", ...(tasksOnly ? [] : ["answer"])];
  const found = columns.map(
    (column) => `lower(${column}) LIKE @lower ESCAPE '\\' OR ${column} LIKE @text ESCAPE '\\'`,
  );
  return database
    .prepare<object, string>(
      `SELECT id FROM runs WHERE principal = '${ME}' AND (${found.join(" OR ")})
         AND number < coalesce((SELECT number FROM runs WHERE id = @before AND principal = '${ME}'), 1e18)
         AND status = coalesce(@status, status) ORDER BY number DESC LIMIT @limit`,
    )
    .pluck()
    .all({
      lower: like(given.toLowerCase()),
      text: like(given),
      status: status ?? null,
      before: before ?? null,
      limit,
    });
}

/** A text that is somewhere in a run, in its case or in another. */
const part = fc
  .tuple(fc.nat(), fc.nat(), fc.integer({ min: 1, max: 7 }), fc.constantFrom("same", "lower", "upper"))
  .map(([which, from, length, letters]) => {
    const seed = stored[which % RUNS];
    const characters = Array.from(`${seed?.task}${seed?.answer?.slice(-30) ?? ""}`);
    const begin = from % characters.length;
    const found = characters.slice(begin, begin + length).join("");
    if (letters === "same") return found;
    return letters === "lower" ? found.toLowerCase() : found.toUpperCase();
  });

it("gives what one statement over all runs gives, with the index and without", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(part, text(3), fc.constantFrom("long long", "g", "zq", "Long ".repeat(30))),
      fc.option(fc.constantFrom("working", "completed", "failed"), { nil: undefined }),
      fc.boolean(),
      fc.constantFrom(1, 7, 51, 2000),
      fc.option(fc.nat(RUNS), { nil: undefined }),
      async (given, status, tasksOnly, limit, older) => {
        const filter = { text: given, tasksOnly, ...(status === undefined ? {} : { status }) };
        const before = older === undefined ? undefined : `run_${older}`;
        // Nothing is stored with a NUL.
        const asked = { ...filter, text: given.replaceAll("\0", "\uFFFD") };
        const expected = plainly(asked, limit, before);
        for (const runs of [indexed, read]) {
          const found = await runs.read.summaries(ME, filter, { limit, before });
          expect(found.map(({ id }) => id)).toEqual(expected);
        }
      },
    ),
    attempts(400),
  );
});

it("finds no run of another principal", async () => {
  const [yours] = await indexed.read.summaries("you", {}, { limit: 1 });
  expect(yours).toBeDefined();
  const theirs = stored.filter(({ principal }) => principal === "you").map(({ task }) => task);
  for (const task of theirs.slice(0, 20)) {
    const found = await indexed.read.summaries(ME, { text: task }, { limit: 99 });
    expect(found.every(({ principal }) => principal === ME)).toBe(true);
  }
});

it("forgets the texts of runs that are deleted", async () => {
  const count = database.prepare<[], number>(
    "SELECT count(*) FROM (SELECT DISTINCT doc FROM run_text_terms)",
  );
  expect(count.pluck().get()).toBeGreaterThan(100);
  database.exec("DELETE FROM runs");
  expect(count.pluck().get()).toBe(0);
});
