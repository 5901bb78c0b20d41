import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { flagsOf, parseArguments, type Command, commandHelp, overview } from "../../src/cli/command.ts";
import { SETTING_GROUPS, SETTINGS, envName, flagName } from "../../src/config/settings.ts";

const command: Command = {
  name: "work",
  usage: 'work ["TASK"]',
  summary: "Works.",
  configurable: true,
  positionals: 1,
  flags: [{ name: "yes", short: "y", kind: "boolean", help: "Agree." }],
  run: async () => 0,
};
const parse = (...argv: string[]) => parseArguments(argv, command);

describe("parseArguments", () => {
  it("reads flags in all their forms, and a task", () => {
    expect(parse("-y", "--model", "offline", "--port=9", "--skills", "/a", "--skills=/b", "a task")).toEqual({
      ok: true,
      flags: { yes: true, model: "offline", port: "9", skills: ["/a", "/b"] },
      positionals: ["a task"],
    });
  });

  it("takes everything after -- as words", () => {
    expect(parse("--", "--model")).toMatchObject({ ok: true, positionals: ["--model"] });
  });

  it("reports every problem of flags at once, and no word that may be a value of theirs", () => {
    const parsed = parse("--modle", "--yes=no", "-x", "task", "another", "--port");
    expect(parsed).toEqual({
      ok: false,
      problems: [
        "Unknown flag --modle. Did you mean --model?",
        "--yes takes no value.",
        "Unknown flag -x.",
        "--port needs a value: --port PORT.",
      ],
    });
  });

  it("does not take a flag for the value of the one before it", () => {
    expect(parse("--model", "--yes")).toEqual({
      ok: false,
      problems: ["--model needs a value: --model MODEL."],
    });
    expect(parse("--model=--yes")).toMatchObject({ ok: true });
  });

  it("refuses settings where a command has none", () => {
    const parsed = parseArguments(["--model", "offline"], { ...command, configurable: false });
    expect(parsed).toMatchObject({ ok: false, problems: ["Unknown flag --model."] });
  });
});

describe("help", () => {
  it("shows every flag of a command, and for settings the environment variable", () => {
    const text = commandHelp(command, undefined, true);
    for (const { name } of flagsOf(command)) expect(text).toContain(`--${name}`);
    for (const setting of SETTINGS) {
      const names = [flagName(setting), envName(setting)];
      for (const name of names) expect(text).toContain(name);
    }
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(102);
  });

  it.each(COMMANDS.map((each) => [each.name, each] as const))("of %s fits on a screen", (_, each) => {
    const short = commandHelp(each);
    expect(short.trimEnd().split("\n").length).toBeLessThanOrEqual(40);
    const ofActions = (each.actions ?? []).map((action) => commandHelp(each, action)).join("");
    for (const { name } of each.flags) expect(short + ofActions).toContain(`--${name}`);
    const all = commandHelp(each, undefined, true);
    for (const [title] of SETTING_GROUPS) if (each.configurable) expect(all).toContain(`\n${title}\n`);
  });

  it("names what a value is", () => {
    const text = commandHelp(command, undefined, true);
    const named = ["--system-prompt-file FILE", "--host HOST", "--files-hide PATTERN"];
    const chosen = ["--approvals-write workspace|all|none", "--limits-work-time SECONDS"];
    for (const shown of [...named, ...chosen]) expect(text).toContain(shown);
    expect(text).not.toMatch(/ (?:VALUE|DIR) .*\b[Ff]ile with/);
  });

  it("lists commands with their summaries", () => {
    expect(overview([command])).toMatch(/work \["TASK"\] +Works\./);
  });
});
