import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { GroupCommit } from "../../src/storage/sqlite/commit.ts";
import { opened } from "./support.ts";

const small = { bytes: 1, source: "agent" };

function prepared() {
  const database = opened();
  database.exec("CREATE TABLE log (entry TEXT NOT NULL) STRICT");
  const insert = database.prepare<[string | null]>("INSERT INTO log VALUES (?)");
  const commits = new GroupCommit(database);
  const all = database.prepare<[], string>("SELECT entry FROM log ORDER BY rowid").pluck();
  const add = (entry: string | null, bytes = 1): Promise<void> =>
    commits.run({ bytes, source: "agent" }, () => void insert.run(entry));
  return { commits, add, insert: (entry: string) => insert.run(entry), entries: () => all.all() };
}

it("commits in the order it was asked, whatever the sizes", async () => {
  const { add, entries } = prepared();
  const names = Array.from({ length: 300 }, (_, index) => `entry ${index}`);
  await Promise.all(names.map((name, index) => add(name, index % 7 === 0 ? 5_000_000 : 1)));
  expect(entries()).toEqual(names);
});

it("keeps nothing of a job that fails and everything of those beside it", async () => {
  const { add, commits, insert, entries } = prepared();
  const half = commits.run(small, () => {
    insert("half");
    throw new Error("stopped halfway");
  });
  const results = await Promise.allSettled([add("a"), half, add(null), add("b")]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
  expect(entries()).toEqual(["a", "b"]);
});

it("commits at once when asked to", async () => {
  const { add, commits, entries } = prepared();
  const waiting = add("a");
  commits.flush();
  expect(entries()).toEqual(["a"]);
  await waiting;
});

it("waits for more while each turn of the event loop brings jobs of other agents, and for one agent it does not", async () => {
  const { commits } = prepared();
  const turnsUntilCommitted = async (sourceOf: (turn: number) => string | undefined): Promise<number> => {
    const committed: string[] = [];
    const jobs = [commits.run({ bytes: 1, source: "first" }, () => void committed.push("first"))];
    let turns = 0;
    for (; committed.length === 0; turns += 1) {
      const source = sourceOf(turns);
      if (source !== undefined) jobs.push(commits.run({ bytes: 1, source }, () => undefined));
      await nextTurn();
    }
    await Promise.all(jobs);
    return turns;
  };
  const alone = await turnsUntilCommitted(() => undefined);
  expect(await turnsUntilCommitted(() => "first")).toBe(alone);
  expect(await turnsUntilCommitted((turn) => (turn < 3 ? `agent ${turn}` : undefined))).toBe(alone + 3);
  expect(await turnsUntilCommitted((turn) => `agent ${turn}`)).toBeGreaterThan(alone + 3);
});
