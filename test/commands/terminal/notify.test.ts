import { expect, test } from "vitest";
import { Caller } from "../../../src/cli/terminal/notify.ts";

function caller(how: "off" | "bell" | "desktop", env: Record<string, string> = {}, isTTY = true) {
  const written: string[] = [];
  let now = 0;
  const output = { isTTY, write: (text: string | Uint8Array) => written.push(String(text)) > 0 };
  const person = new Caller({ output, how, env, clock: () => now });
  return { person, written, wait: (seconds: number) => (now += seconds * 1000) };
}

test("what a person is needed for rings at once, what has ended only when they may look elsewhere", () => {
  const { person, written, wait } = caller("bell");
  person.ended("completed: Compare");
  expect(written).toEqual([]);
  person.call("wants to run write_file");
  expect(written).toEqual(["\u0007"]);
  wait(40);
  person.seen();
  wait(29);
  person.ended("completed: Compare");
  expect(written).toHaveLength(1);
  wait(2);
  person.ended("failed: Compare");
  expect(written).toHaveLength(2);
});

test.each([
  [{ TERM_PROGRAM: "WezTerm" }, "\u001b]9;deepagent-mcp: a; b\u0007\u0007"],
  [{ TERM: "xterm-kitty" }, "\u001b]99;;deepagent-mcp: a; b\u001b\\\u0007"],
  [{ TERM: "foot" }, "\u001b]777;notify;deepagent-mcp;a, b\u001b\\\u0007"],
  [{ TERM: "xterm-kitty", TMUX: "1" }, "\u0007"],
  [{ TERM: "xterm" }, "\u0007"],
])("a terminal of %j shows the message on the desktop as it is known to", (env, expected) => {
  const { person, written } = caller("desktop", env);
  person.call("a; b");
  expect(written).toEqual([expected]);
});

test("a message cannot end its sequence or begin another, and silence is kept", () => {
  const { person, written } = caller("desktop", { TERM: "foot" });
  person.call(`x\u0007\u001b]0;title\u001b\\\n${"y".repeat(500)}`);
  expect(written[0]?.slice(0, -3).split("\u001b")).toHaveLength(2);
  expect(written[0]?.length).toBeLessThan(200);
  for (const quiet of [caller("off"), caller("bell", {}, false)]) {
    quiet.person.call("a");
    expect(quiet.written).toEqual([]);
  }
});
