import { expect, test } from "vitest";
import { comparePrograms } from "./started-programs.ts";

/** Other lines every day: a few thousand clean lines prove little. A failure names its lines. */
const TODAY = Math.floor(Date.now() / 86_400_000);

test.for([0, 1, 2, 3].map((part) => [part]))(
  "shells start only programs that the reader found, within the rules: 15,000 lines, part %i",
  { tags: ["bwrap"] },
  ([part]) => {
    const { unclaimed, uncovered, passing } = comparePrograms(15_000, TODAY * 4 + part!);
    expect(unclaimed).toEqual([]);
    expect(uncovered).toEqual([]);
    expect(passing).toBeGreaterThan(2_000);
  },
);
