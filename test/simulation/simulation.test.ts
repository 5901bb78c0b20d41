// The worlds of `npm run simulate` in small numbers: the same seeds each time.
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { ROOT } from "../commands/built-bin.ts";
import { BROKEN } from "./broken.mjs";
import { isLinearizable } from "./linearizable.ts";

function simulate(...args: string[]): { status: number | null; stdout: string } {
  const options = { cwd: ROOT, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/simulate.mjs", ...args], options);
  return { status, stdout: stdout + stderr };
}

const LONG = { timeout: 300_000, tags: ["long"] };
const passed = { status: 0, stdout: expect.not.stringContaining("npm run simulate") };

it("nothing is lost in 150 worlds with agents without a model", { timeout: 120_000 }, () => {
  expect(simulate("--seeds", "150")).toEqual(passed);
});

it("nothing is lost in 15 worlds with agents of the product", { timeout: 120_000 }, () => {
  expect(simulate("--seeds", "15", "--tier", "2")).toEqual(passed);
});

it.each(["1", "2"])("a seed makes the same world each time, in tier %s", LONG, (tier) => {
  const hashes = (): string[] =>
    simulate("--hashes", "--seeds", "4", "--tier", tier).stdout.match(/^seed .*/gm) ?? [];
  expect(hashes()).toHaveLength(4);
  expect(hashes()).toEqual(hashes());
});

describe.each(Object.entries(BROKEN))("with the fault '%s' built in", (name, { finds }) => {
  it("fails, and names a plan that shows it", LONG, () => {
    const { status, stdout } = simulate("--break", name, "--seeds", "1000", "--first");
    expect(status).toBe(1);
    expect(stdout).toMatch(new RegExp(`^seed \\d+: (${finds.join("|")}): `, "m"));
  });
});

it("prints the shortest plan that still fails, as one command", LONG, () => {
  const broken = (...args: string[]) => simulate("--break", "effect forgotten", ...args);
  const [, seed = ""] = /^seed (\d+):/m.exec(broken("--seeds", "300", "--first").stdout) ?? [];
  const [command = "", without = ""] =
    /npm run simulate -- --seed \d+ --without ([\d,]+)/.exec(broken("--seed", seed).stdout) ?? [];
  const again = broken("--seed", seed, "--without", without);
  expect(again.status).toBe(1);
  expect(again.stdout).toContain(command);
  const left = [...again.stdout.matchAll(/\{"kind":/g)].length;
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(6);
});

describe("the order of decisions", () => {
  const approve = JSON.stringify({ type: "approve" });
  const reject = JSON.stringify({ type: "reject" });
  const call = (given: string, beganAt: number, endedAt: number, outcome?: string) => ({
    runId: "run",
    requestId: "int:0",
    given,
    beganAt,
    endedAt,
    ...(outcome === undefined ? {} : { outcome }),
  });

  it.each([
    [
      "one stored, one refused",
      [call(approve, 0, 5, "stored"), call(reject, 1, 9, "already_answered")],
      approve,
    ],
    ["a repeat of the stored one", [call(approve, 0, 5, "stored"), call(approve, 6, 9, "repeated")], approve],
    ["a repeat that ended first", [call(approve, 0, 9, "stored"), call(approve, 1, 5, "repeated")], approve],
    ["one that nobody heard of", [call(approve, 0, 5), call(reject, 6, 9, "already_answered")], approve],
    ["nothing but refusals", [call(approve, 0, 5, "already_answered")], undefined],
  ])("agrees with %s", (_name, calls, stored) => {
    expect(isLinearizable(calls, stored)).toBe(true);
  });

  it.each([
    ["two stored", [call(approve, 0, 5, "stored"), call(reject, 1, 9, "stored")], approve],
    [
      "a repeat before the stored one began",
      [call(approve, 6, 9, "stored"), call(approve, 0, 5, "repeated")],
      approve,
    ],
    ["a repeat of another answer", [call(approve, 0, 5, "stored"), call(reject, 6, 9, "repeated")], approve],
    ["another answer in the end", [call(approve, 0, 5, "stored")], reject],
  ])("does not agree with %s", (_name, calls, stored) => {
    expect(isLinearizable(calls, stored)).toBe(false);
  });
});
