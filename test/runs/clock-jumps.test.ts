// @module-tag long
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  approve,
  callingInTurn,
  databaseFile,
  follow,
  kinds,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
  askedAbout,
  reachAsked,
} from "./support.ts";

const HOUR = 3_600_000;
const YEAR = 8760 * HOUR;
const systemNow = Date.now.bind(Date);

afterEach(() => vi.restoreAllMocks());

/** Sets the system clock of this process, for whoever asks for the time. */
function setClock(aheadMs: number): void {
  vi.restoreAllMocks();
  vi.spyOn(Date, "now").mockImplementation(() => systemNow() + aheadMs);
}

describe.each([
  ["back an hour", 0, -HOUR],
  ["back a year", 0, -YEAR],
  ["ahead a year", 0, YEAR],
  ["right again, from a year ahead", YEAR, 0],
  ["right again, from a moment ahead", 500, 0],
])("the system clock is set %s", (_, before, after) => {
  test("in the middle of a run: what it did is not forgotten, nor done twice, here and in the next process", async () => {
    setClock(before);
    const file = databaseFile();
    const notes: string[] = [];
    const tools = [
      noteTool(notes, async (text) => {
        if (text === "b") setClock(after);
      }),
    ];
    const model = callingInTurn([note("a")], [note("b")], [note("c")], [note("d")]);
    const agent = { model, tools, interruptOn: askedAbout("d") };
    const first = openServer(file, agent);
    const run = await startRun(first.service, "note");
    await reach(first.service, run.id, "input_required");
    first.kill();
    const next = openServer(file, agent);
    await approve(next.service, run.id, "d");
    const { run: ended } = await reach(next.service, run.id, "completed");
    expect(ended.answer).toBe("noted a; noted b; noted c; noted d");
    expect(notes).toEqual(["a", "b", "c", "d"]);
    expect(kinds(await follow(next.service, run.id)).filter((kind) => kind === "tool_started")).toHaveLength(
      4,
    );
  });

  test("while subagents work: each goes on where it was", async () => {
    setClock(before);
    const file = databaseFile();
    const notes: string[] = [];
    const tools = [
      noteTool(notes, async (text) => {
        if (text === "x1") setClock(after);
      }),
    ];
    const task = (name: string) => ({ name: "task", args: { description: "work", subagent_type: name } });
    const subagents = ["x", "y"].map((name) => ({
      name,
      description: "Helps.",
      systemPrompt: "Help.",
      model: callingInTurn([note(`${name}1`)], [note(`${name}2`)]),
      tools,
    }));
    const agent = { model: callingInTurn([task("x"), task("y")]), subagents, interruptOn: askedAbout("2") };
    const first = openServer(file, agent);
    const run = await startRun(first.service, "delegate");
    await reachAsked(first.service, run.id, subagents.length);
    first.kill();
    const next = openServer(file, agent);
    await approve(next.service, run.id, "x2", "y2");
    await reach(next.service, run.id, "completed");
    expect(notes.toSorted()).toEqual(["x1", "x2", "y1", "y2"]);
  });
});
