// @module-tag long
import { describe, expect, test } from "vitest";
import { linesProgram } from "../crash/process.ts";
import { disturb } from "../faults/disturb.ts";
import type { FaultKind } from "../faults/faults.ts";
import { program } from "../support/harness-stdio.ts";

/** Slow ones first: what they do goes on while the others come. `bench/faults` has a thousand, of every kind. */
const FAULTS: readonly FaultKind[] = [
  "cut the network, connections lost",
  "suspend a process",
  ...Array<FaultKind>(7).fill("terminate connections in Postgres"),
  "crash Postgres",
  ...Array<FaultKind>(5).fill("break connections in the network"),
  "fail over to a replica",
  ...Array<FaultKind>(4).fill("kill a process"),
  "restart Postgres",
  "kill two processes",
];

describe("many machines on one Postgres", { tags: "postgres" }, () => {
  test("nothing acknowledged is lost and nothing is done twice, whatever breaks", async () => {
    const programs = { program: await program(), linesServer: await linesProgram() };
    const report = await disturb({ ...programs, seed: 1, faults: FAULTS, people: 4 });
    expect(report.complaints).toEqual([]);
    expect(report.stories).toBeGreaterThan(0);
    expect(report.decisions).toBeGreaterThan(0);
  });
});
