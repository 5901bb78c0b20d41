import { describe, expect, test } from "vitest";
import { readCommandLine } from "../../../src/rules/shell/read.ts";
import { comparePrograms } from "./started-programs.ts";

describe("Shells start only programs that the reader found, within the rules", { tags: ["bwrap"] }, () => {
  test("for generated lines and mutated lines of agents", () => {
    const { passing, started, unclaimed, uncovered } = comparePrograms(2_000, 11);
    expect(unclaimed).toEqual([]);
    expect(uncovered).toEqual([]);
    expect(passing).toBeGreaterThan(200);
    expect(started).toBeGreaterThan(400);
  });

  test.for<[string, typeof readCommandLine]>([
    [
      "a substitution is an argument",
      (line, dialect) => readCommandLine(line.replaceAll("$(evil)", "$X"), dialect),
    ],
    [
      "the last command is overlooked",
      (line, dialect) => {
        const reading = readCommandLine(line, dialect);
        return reading.ok ? { ...reading, commands: reading.commands.slice(0, -1) } : reading;
      },
    ],
    [
      "an operator of two characters is one",
      (line, dialect) => readCommandLine(line.replaceAll(/\|\|?[^;&|]*/g, ""), dialect),
    ],
  ])("a broken reader is found: %s", ([, read]) => {
    const { unclaimed, uncovered } = comparePrograms(600, 12, read);
    expect([...unclaimed, ...uncovered]).not.toEqual([]);
  });
});
