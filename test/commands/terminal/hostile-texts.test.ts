// Names and texts of others reach the terminal as escapes, whichever command shows them.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { type TerminalHome, terminalHome, waitingRun } from "../terminal-home.ts";
import { HOSTILE, STEERS } from "./hostile-text.ts";

/** A folder whose files, agents and skills have hostile names and texts, and a file of settings that are wrong. */
function hostileHome(): TerminalHome & { wrong: string } {
  const home = terminalHome();
  const skill = join(home.workspace, "skills", `s${HOSTILE}`);
  const agents = join(home.workspace, ".claude/agents");
  for (const folder of [skill, agents]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(home.workspace, "notes.md"), `TODO: ${HOSTILE}\n`);
  writeFileSync(join(skill, "SKILL.md"), "---\nname: [\n---\n");
  writeFileSync(join(agents, `file${HOSTILE}.md`), "no front matter");
  writeFileSync(join(agents, "t.md"), `---\nname: t1\ntools: "Foo${HOSTILE}"\ndescription: d\n---\nx`);
  const wrong = join(home.workspace, "..", "wrong.json");
  writeFileSync(wrong, JSON.stringify({ [HOSTILE]: 1, mcpServers: { [`s${HOSTILE}`]: { url: HOSTILE } } }));
  return { ...home, wrong };
}

/** The calls of each command, and of each of its actions by `COMMAND ACTION`. */
const calls = (wrong: string): Record<string, readonly string[][]> => {
  const problem = (...words: string[]): string[] => [...words, "--config", wrong];
  return {
    run: [["run", `list every TODO ${HOSTILE}`, "--yes"], ["run", HOSTILE, HOSTILE], problem("run", "x")],
    "runs list": [
      ["runs", "list"],
      ["runs", "list", "--json"],
      ["runs", HOSTILE],
    ],
    "runs show": [
      ["runs", "show", "last"],
      ["runs", "show", "last", "--json"],
      ["runs", "show", HOSTILE],
    ],
    "runs watch": [
      ["runs", "watch", "last"],
      ["runs", "watch", "last", "--json"],
    ],
    "runs points": [
      ["runs", "points", "last"],
      ["runs", "points", "last", "--json"],
    ],
    "runs answer": [
      ["runs", "answer", HOSTILE],
      ["runs", "answer", "last", HOSTILE, "--approve"],
    ],
    "runs review": [
      ["runs", "review", "last"],
      ["runs", "review", HOSTILE],
    ],
    "runs apply": [["runs", "apply", "last", "--file", HOSTILE]],
    "runs discard": [
      ["runs", "discard", "last"],
      ["runs", "discard", HOSTILE],
    ],
    "runs tell": [
      ["runs", "tell", "last", HOSTILE],
      ["runs", "tell", HOSTILE, HOSTILE],
    ],
    "runs cancel": [
      ["runs", "cancel", "last", "--message", HOSTILE],
      ["runs", "show", "last"],
    ],
    "runs open": [["runs", "open", HOSTILE]],
    "runs prune": [
      ["runs", "prune", "--dry-run", "--retention-days", HOSTILE],
      ["runs", "prune", HOSTILE],
    ],
    "access list": [["access", "list"]],
    "access revoke": [["access", "revoke", HOSTILE]],
    "schedule add": [
      ["schedule", "add", HOSTILE, "task"],
      ["schedule", "add", "@daily", HOSTILE, "--name", HOSTILE, "--goal", HOSTILE],
      ["schedule", "add", "@daily", `News ${HOSTILE}`, "--goal", HOSTILE],
      ["schedule", "add", "@daily", "x", "--time-zone", HOSTILE],
    ],
    "schedule list": [
      ["schedule", "list"],
      ["schedule", "list", "--json"],
    ],
    "schedule show": [
      ["schedule", "show", `News ${HOSTILE}`],
      ["schedule", "show", HOSTILE],
    ],
    "schedule edit": [["schedule", "edit", `News ${HOSTILE}`, "--task", HOSTILE]],
    "schedule pause": [["schedule", "pause", `News ${HOSTILE}`]],
    "schedule resume": [["schedule", "resume", `News ${HOSTILE}`]],
    "schedule run": [["schedule", "run", `News ${HOSTILE}`]],
    "schedule remove": [["schedule", "remove", `News ${HOSTILE}`]],
    "news list": [
      ["news", "list"],
      ["news", "list", HOSTILE],
    ],
    "news retry": [["news", "retry", HOSTILE]],
    "news drop": [["news", "drop", HOSTILE]],
    demo: [["demo", `list every TODO ${HOSTILE}`, "--workspace", ".", "--yes"]],
    init: [
      ["init", "--client", HOSTILE, "--yes"],
      ["init", "--sandbox", HOSTILE, "--yes"],
    ],
    install: [
      ["install", HOSTILE],
      ["install", "cursor", "--workspace", HOSTILE, "--print"],
    ],
    uninstall: [["uninstall", HOSTILE]],
    doctor: [["doctor", "--offline"], problem("doctor", "--offline")],
    "models list": [
      ["models", "list"],
      ["models", HOSTILE],
    ],
    "models add": [["models", "add", HOSTILE]],
    "keys list": [["keys", HOSTILE]],
    "keys set": [["keys", "set", HOSTILE]],
    "keys forget": [["keys", "forget", HOSTILE]],
    login: [["login", HOSTILE], problem("login", "s")],
    logout: [["logout", HOSTILE]],
    graph: [["graph"], problem("graph")],
    completions: [
      ["completions", HOSTILE],
      ["completions", "bash"],
      ["completions", "words", "runs", "show", ""],
    ],
    open: [problem("open")],
    serve: [problem("serve"), problem("serve", "--http"), [`--${HOSTILE}`]],
    work: [problem("work")],
    acp: [problem("acp")],
    storage: [["storage", HOSTILE], problem("storage", "copy")],
    help: [["help", HOSTILE], [HOSTILE], ["help"], ["run", "--help-all"], ["--version"]],
  };
};

test("no command lets a text of others steer the terminal", async () => {
  const home = hostileHome();
  await waitingRun(home);
  const table = calls(home.wrong);
  const names = COMMANDS.flatMap(({ name, actions = [] }) =>
    actions.length === 0 ? [name] : actions.map((action) => `${name} ${action.name}`),
  );
  expect(Object.keys(table).toSorted()).toEqual([...names, "help"].toSorted());
  const steered: string[] = [];
  let shown = 0;
  for (const words of Object.values(table).flat()) {
    const { stdout, stderr } = await home.bin(...words);
    const text = stdout + stderr;
    expect(text, JSON.stringify(words)).not.toBe("");
    if (STEERS.test(text)) steered.push(JSON.stringify({ words, text: text.slice(0, 500) }));
    if (text.includes(String.raw`\u202e`)) shown += 1;
  }
  expect(steered).toEqual([]);
  // Most of them show the text, as escapes.
  expect(shown).toBeGreaterThan(30);
});
