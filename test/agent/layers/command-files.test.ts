import { expect, it } from "vitest";
import { parseCommand } from "../../../src/agent/layers/command-files.ts";

const fill = (body: string, given: string, head = ""): string | undefined =>
  parseCommand({ name: "a", path: "/c/a.md" }, head === "" ? body : `---\n${head}\n---\n${body}`)?.fill(
    given,
  );

it.each([
  ["Fix $1 in $2", "'a b' c", "Fix a b in c"],
  ["Fix $0 in $1", "a b", "Fix a in b"],
  ["Fix $ARGUMENTS[1]", "a b", "Fix b"],
  ["Fix {{args}} for $5", "a b", "Fix a b for "],
  ["Costs $HOME and !`rm -rf /`", "", "Costs $HOME and !`rm -rf /`"],
  ["No place", "a b", "No place\n\nArguments: a b"],
  ["Say $ARGUMENTS", "$1 {{args}} ${input:x}", "Say $1 {{args}} ${input:x}"],
])("fills %j with %j", (body, given, expected) => {
  expect(fill(body, given)).toBe(expected);
});

it("fills arguments with names", () => {
  expect(fill("From $from to $to, not $other", "a b", "arguments: from to")).toBe("From a to b, not $other");
  expect(fill("Say $what", "two words", "arguments: [what]")).toBe("Say two words");
});

it.each([
  ["../../etc/x", ".-.-etc-x"],
  ["git:commit", "git:commit"],
  ["a b", "a-b"],
  ["x".repeat(100), "x".repeat(64)],
])("the name %j becomes %j", (name, expected) => {
  expect(parseCommand({ name, path: "/c/a.md" }, "text")?.name).toBe(expected);
});

it.each(["", "---\ndescription: d\n---\n"])("without a text is none: %j", (text) => {
  expect(parseCommand({ name: "a", path: "/c/a.md" }, text)).toBeUndefined();
});

it("in broken TOML is none", () => {
  expect(parseCommand({ name: "a", path: "/c/a.toml" }, "prompt = ")).toBeUndefined();
});
