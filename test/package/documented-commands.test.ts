import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseArguments } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { ROOT } from "../commands/built-bin.ts";

const texts = ["README.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith(".md"),
);

/** What calls the program: lines of the blocks for a shell, and what stands as code in a sentence. */
function commandsOf(name: string): string[] {
  const text = readFileSync(join(ROOT, name), "utf8");
  const inline = [...text.matchAll(/`deepagent-mcp ([^`]+)`|<code>deepagent-mcp ([^<]+)<\/code>/g)];
  const lines = [...text.matchAll(/^```sh\n([^]*?)^```/gm)]
    .flatMap(([, block = ""]) => block.replaceAll("\\\n", " ").split("\n"))
    .flatMap((line) => /^(?:\w+=\S+ )*deepagent-mcp (\S.*)$/.exec(line)?.[1] ?? [])
    .filter((words) => !words.startsWith("#"));
  return [...inline.map(([, code, marked]) => code ?? marked ?? ""), ...lines];
}

/** The words of a line of a shell, without comments, redirections and what follows a pipe. */
function wordsOf(line: string): string[] {
  const [command = ""] = line.split(/\s(?:#|[<>|&]\s?)/);
  const words = command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g);
  return [...words].map(([, double, single, plain]) => double ?? single ?? plain ?? "");
}

test.each(texts)("every command in %s is one that the program takes", (name) => {
  for (const line of commandsOf(name)) {
    const [first = "", ...rest] = wordsOf(line);
    if (first.startsWith("--")) continue;
    const command = COMMANDS.find((one) => one.name === first);
    if (command === undefined) throw new Error(`${line}: there is no command ${first}`);
    // `[…]` shows what may be left out.
    const parsed = parseArguments(
      rest.map((word) => word.replaceAll(/[[\]]/g, "")),
      command,
    );
    expect(parsed, line).toMatchObject({ ok: true });
  }
});

test("there are commands to look at", () => {
  expect(texts.flatMap(commandsOf).length).toBeGreaterThan(30);
});
