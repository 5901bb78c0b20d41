import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, expect, test } from "vitest";
import { openWorld } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";

const NAMES = [
  "open",
  "openSync",
  "opendir",
  "opendirSync",
  "readdir",
  "readdirSync",
  "readFile",
  "readFileSync",
];
const PLACES: Record<string, unknown>[] = [fs, fs.promises];
const undo: (() => void)[] = [];
afterEach(() => {
  for (const restore of undo.splice(0)) restore();
  syncBuiltinESMExports();
});

/** Counts directories that this process lists and files that it opens. */
function countCalls(): { calls: number } {
  const counter = { calls: 0 };
  for (const place of PLACES)
    for (const name of NAMES) {
      const original = place[name];
      if (typeof original !== "function") continue;
      const counted = (...args: unknown[]): unknown => {
        counter.calls += 1;
        return Reflect.apply(original, place, args);
      };
      place[name] = Object.assign(counted, original);
      undo.push(() => void (place[name] = original));
    }
  syncBuiltinESMExports();
  return counter;
}

/** Calls between the start of a run and the first request to its model, in a workspace with as many files. */
async function callsUntilAsked(count: number): Promise<number> {
  const files = Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`src/part${index % (count / 10)}/file${index}.ts`, "x"]),
  );
  let asked = Number.NaN;
  const counter = countCalls();
  const world = await openWorld("memory", {
    files: { ...files, "AGENTS.md": "A rule.", ".cursor/rules/a.mdc": "Another." },
    think: (thought) => {
      if (Number.isNaN(asked)) asked = counter.calls;
      return play({ Go: [{ text: "gone" }] })(thought);
    },
  });
  const client = await world.connect("v2-modern");
  const before = counter.calls;
  await client.call("run_deep_agent", { task: "Go" });
  return asked - before;
}

test("the first request of a run lists and opens as much in a large workspace as in a small one", async () => {
  await callsUntilAsked(10);
  const [small, large] = [await callsUntilAsked(10), await callsUntilAsked(1000)];
  expect(small).toBeGreaterThan(10);
  // Work in the background may add some.
  expect(large).toBeLessThan(small + 20);
});
