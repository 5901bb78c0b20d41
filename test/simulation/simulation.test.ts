// The worlds of `npm run simulate` in small numbers: the same seeds each time.
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { ROOT } from "../commands/built-bin.ts";
import { BROKEN } from "./broken.mjs";
import { type PersonCall, conversation } from "./conversation.ts";
import { isLinearizable } from "./linearizable.ts";

function simulate(...args: string[]): { status: number | null; stdout: string } {
  const options = { cwd: ROOT, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/simulate.mjs", ...args], options);
  return { status, stdout: stdout + stderr };
}

const LONG = { timeout: 300_000, tags: ["long"] };
const passed = { status: 0, stdout: expect.not.stringContaining("npm run simulate") };

// On two cores that do nothing else, both of these together take half a minute.
it("nothing is lost in 300 worlds with agents without a model", () => {
  expect(simulate("--seeds", "300")).toEqual(passed);
});

it("nothing is lost in 30 worlds with agents of the product", () => {
  expect(simulate("--seeds", "30", "--tier", "2")).toEqual(passed);
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

// Fewer acts than the plan of the seed has by now.
it.each([
  ["a server that was stopped reads a copy that its successor has removed", "6776", "9,10,12,13"],
  ["a server that was stopped writes into the copy of its successor", "4948", "2,3,5,8,9,11,12,13,14,15"],
  ["files are noted that were applied after the end on a full disk", "656", "1,3,4,7,12,13,15,16,19"],
  ["files are noted that a server applied after the end before it was killed", "1312", "3,7,11"],
  ["they are noted before a later run deletes the copy", "9692", "1,2,6,8,9,10"],
])("holds that %s", LONG, (_name, seed, without) => {
  expect(simulate("--seed", seed, "--without", without)).toEqual(passed);
});

describe("the order of the calls about a conversation", () => {
  const approve = JSON.stringify({ type: "approve" });
  const reject = JSON.stringify({ type: "reject" });
  const about = { runId: "one" };
  const call = (
    operation: PersonCall["operation"],
    beganAt: number,
    endedAt: number,
    outcome?: string,
  ): PersonCall => ({ operation, beganAt, endedAt, ...(outcome === undefined ? {} : { outcome }) });
  const decide = (given: string, ...rest: [number, number, string?]) =>
    call({ kind: "answer", ...about, requestId: "int:0", given }, ...rest);
  const cancel = (...rest: [number, number, string?]) => call({ kind: "cancel", ...about }, ...rest);
  const tell = (key: string, ...rest: [number, number, string?]) =>
    call({ kind: "tell", ...about, key }, ...rest);
  const goOn = (...rest: [number, number, string?]) =>
    call({ kind: "continue", ...about, key: "more" }, ...rest);
  const apply = (...rest: [number, number, string?]) => call({ kind: "apply", ...about }, ...rest);

  const explains = (calls: readonly PersonCall[], answer: string | undefined, statuses: string): boolean => {
    const [first = "", second] = statuses.split(", ");
    const runs = [
      { id: "one", status: first, key: null },
      ...(second === undefined ? [] : [{ id: "two", status: second, key: "more" }]),
    ];
    const { calls: all, model } = conversation(calls, { runs, answers: new Map([["int:0", answer]]) });
    return isLinearizable(all, model);
  };

  it.each([
    ["one stored, one refused", [decide(approve, 0, 5, "stored"), decide(reject, 1, 9, "already_answered")]],
    ["a repeat of the stored one", [decide(approve, 0, 5, "stored"), decide(approve, 6, 9, "repeated")]],
    ["a repeat that ended first", [decide(approve, 0, 9, "stored"), decide(approve, 1, 5, "repeated")]],
    ["one that nobody heard of", [decide(approve, 0, 5), decide(reject, 6, 9, "already_answered")]],
    ["a message, sent again after the end", [tell("a", 0, 5), tell("a", 6, 9, "repeated")]],
    ["a message too late", [tell("a", 0, 5, "ended")]],
    ["a cancellation too late", [cancel(0, 5, "ended: completed")]],
    ["a review when the run has ended", [apply(0, 5, "open"), apply(6, 9, "applied all")]],
    ["a second review without anything", [apply(0, 9, "applied all"), apply(1, 5, "nothing_proposed")]],
    ["more work that became a message", [goOn(0, 5, "told"), goOn(6, 9, "existing")]],
  ])("agrees with %s", (_name, calls) => {
    expect(explains(calls, approve, "completed")).toBe(true);
  });

  it.each([
    ["cancelled and continued", [cancel(0, 5, "cancelled"), goOn(6, 8, "started")]],
    ["cancelled by a call that nobody heard of", [cancel(0, 5), goOn(6, 8, "started")]],
  ])("agrees with runs that were %s", (_name, calls) => {
    expect(explains(calls, undefined, "cancelled, completed")).toBe(true);
  });

  it.each([
    ["two stored", [decide(approve, 0, 5, "stored"), decide(reject, 1, 9, "stored")]],
    ["a repeat before the stored one", [decide(approve, 6, 9, "stored"), decide(approve, 0, 5, "repeated")]],
    ["a repeat of another answer", [decide(approve, 0, 5, "stored"), decide(reject, 6, 9, "repeated")]],
    ["another answer in the end", [decide(reject, 0, 5, "stored")]],
    [
      "nothing but refusals of an open run",
      [decide(reject, 0, 5, "already_answered"), tell("a", 6, 9, "sent")],
    ],
    ["a message after the end", [cancel(0, 3, "ended: completed"), tell("a", 4, 9, "sent")]],
    ["an end that is taken back", [tell("a", 0, 3, "ended"), decide(approve, 4, 9, "stored")]],
    ["a cancellation that did not hold", [cancel(0, 3, "cancelled")]],
    ["a change applied twice", [apply(0, 3, "applied all"), apply(4, 9, "applied some")]],
    ["a review of a run at work", [apply(0, 3, "applied all"), tell("a", 4, 9, "sent")]],
    ["a run that nobody started", [goOn(0, 3, "started")]],
    ["one message sent twice", [tell("a", 0, 3, "sent"), tell("a", 4, 9, "sent")]],
  ])("does not agree with %s", (_name, calls) => {
    expect(explains(calls, approve, "completed")).toBe(false);
  });
});
