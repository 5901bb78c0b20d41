// @module-tag python3
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { displayWidth } from "../../../src/cli/terminal/text.ts";
import { program } from "../../support/harness-stdio.ts";
import { openTerminal } from "../../support/pseudo-terminal.ts";
import { cleanEnv } from "../built-bin.ts";
import { terminalHome, waitingRun } from "../terminal-home.ts";
import { delegate, gate, play } from "./scene.ts";

const EMOJI = ["👩‍👩‍👧 family", "🇩🇪 flag", "👍🏽 thumb", "1️⃣ key", "漢字 words", "한 e\u0301 marks"];
const AGENTS = Array.from({ length: 12 }, (_, index) => `${EMOJI[index % 6]} ${index + 1}. Then report.`);

test.each([40, 100])("twelve agents are named, and those that wait, on %i columns", async (columns) => {
  const { open, opened } = gate();
  const terminal = await play({
    columns,
    rows: 60,
    args: ["run", "Compare everything"],
    main: [delegate(AGENTS), { text: "All compared." }],
    subagent: () => opened.then(() => ({ text: "Compared." })),
  });
  const working = await terminal.until(/8 of 12 agents at work, 4 waiting/);
  const lines = working.split("\n");
  for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
  expect(working).not.toContain("general-purpose");
  expect(lines.filter((line) => /[├└]─ ◌ .*waits/.test(line))).toHaveLength(4);
  expect(lines.filter((line) => /[├└]─ [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] /.test(line))).toHaveLength(8);
  for (const width of [35, columns, 60, 40]) {
    await terminal.resize(width, 60);
    // The row below the first agent is the second one, and above it is nothing left.
    await terminal.until(/^[^\n]*family 1[^\n]*\n[^\n]*flag 2 [^]*8 of 12 agents at work/);
  }
  open();
  await terminal.until(/All compared\./);
  // Nothing of an earlier picture is left over.
  const all = terminal.everything().join("\n");
  expect(all.match(/family 1 /g)).toHaveLength(1);
  await terminal.until(/Next task/);
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
});

test.each([40, 100])("a hundred agents fit in the lines there are, on %i columns", async (columns) => {
  const names = Array.from({ length: 100 }, (_, index) => `${EMOJI[index % 6]} ${index + 1}`);
  const { open, opened } = gate();
  let done = 0;
  const terminal = await play({
    columns,
    rows: 20,
    args: ["run", "Compare everything"],
    main: [delegate(names), { text: "All compared." }],
    subagent: async () => {
      done += 1;
      if (done > 87) await opened;
      return { text: "Compared." };
    },
  });
  const working = await terminal.until(/87 finished[^]*8 of 100 agents at work, 5 waiting/);
  const lines = working.split("\n");
  expect(lines.filter((line) => /[├└]─ [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] /.test(line))).toHaveLength(8);
  expect(working).toMatch(/◌ .* waits, +number 1|◌ .* waits, …/);
  expect(terminal.everything()).toHaveLength(lines.length);
  for (const line of lines) expect(displayWidth(line)).toBeLessThan(columns);
  open();
  await terminal.until(/All compared\.[^]*Next task/);
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
});

test("the words of the agent are seen while it writes them, on one line", async () => {
  const { open, opened } = gate();
  const text =
    "I compare everything with everything else, which takes a while, and then 漢字 comes to an end.";
  const terminal = await play({
    columns: 40,
    args: ["run", "Compare everything"],
    main: [{ text, pieceLength: 5, rest: opened }],
    subagent: () => ({ text: "" }),
  });
  const working = await terminal.until(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] …[^\n]*which takes/);
  for (const line of working.split("\n")) expect(displayWidth(line)).toBeLessThanOrEqual(40);
  open();
  await terminal.until(/an end\.[^]*Next task/);
  // Nothing of it is left above the answer.
  expect(
    terminal
      .everything()
      .join("\n")
      .match(/which takes/g),
  ).toHaveLength(1);
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
});

const CONTENT = [
  "# Plan",
  "",
  "\tA line that is longer than forty columns, with 👩‍👩‍👧 and 漢字 in it.",
  "end",
].join("\n");

test.each([40, 100])("one key decides on a diff that is shown whole, on %i columns", async (columns) => {
  const write = (name: string) => ({
    name: "write_file",
    args: { file_path: `/workspace/${name}.md`, content: CONTENT },
  });
  const terminal = await play({
    columns,
    rows: 40,
    args: ["run", "Write it down"],
    main: [{ toolCalls: [write("one"), write("two")] }, { text: "Written." }],
  });
  // Keys that come before the question are no answer to it.
  terminal.type("a");
  const first = await terminal.until(/Approval 1 of 2 waiting[^]*d details[^]*›/);
  for (const line of first.split("\n")) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
  expect(first).toMatch(/wants to create /);
  expect(first).toMatch(/ 1 \+ # Plan\n/);
  expect(first.replace(/\n +┆ /g, "")).toContain("3 +     A line that is longer than forty columns, with");
  expect(first).toMatch(/ 4 \+ end\n/);
  // Neither an arrow nor a text that was pasted is an answer.
  for (const keys of ["\u001b[A", "aaa"]) {
    terminal.type(keys);
    // On a busy machine, what comes soon after is read together with it, as one text that was pasted.
    await delay(2000);
  }
  terminal.type("a");
  await terminal.until(/› approve\n[^]*Approval 2 of 2 waiting[^]*›/);
  terminal.type("r");
  await terminal.until(/Reason \(optional\)/);
  terminal.type("not this one\r");
  await terminal.until(/Written\.[^]*completed/);
  await terminal.until(/Next task/);
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
});

test("a question of a subagent names it by its task and comes first in its tree, and whoever watches is called", async () => {
  const call = { name: "write_file", args: { file_path: "/workspace/a.md", content: "a" } };
  let turn = 0;
  const terminal = await play({
    columns: 80,
    args: ["run", "Write"],
    main: [delegate(["Write a note. Then tell."]), { text: "Written." }],
    subagent: () => ((turn += 1) === 1 ? { toolCalls: [call] } : { text: "Told." }),
  });
  expect(await terminal.until(/d details/)).toContain('"Write a note" wants to create ');
  const watching = openTerminal([process.execPath, await program(), "runs", "watch", "last"], {
    columns: 80,
    cwd: terminal.home.workspace,
    env: { ...cleanEnv(), ...terminal.home.env },
  });
  const watched = await watching.until(/requested approval/);
  expect(watched).toMatch(/└─ \? Write a note /);
  expect(watched).not.toContain("general-purpose");
  await expect.poll(() => watching.bells()).toBe(1);
  terminal.type("a");
  await watching.until(/Written\./);
  expect(await watching.exited).toBe(0);
  expect(watching.bells()).toBe(1);
});

test("the demo shows the whole of a change before it is approved", async () => {
  const home = terminalHome();
  const terminal = openTerminal([process.execPath, await program(), "demo"], {
    columns: 100,
    rows: 60,
    cwd: home.workspace,
    env: { ...cleanEnv(), HOME: home.workspace, TMPDIR: home.workspace },
  });
  await terminal.until(/d details/);
  for (let more = true; more;) {
    const before = terminal.everything().length;
    terminal.type(" ");
    await expect.poll(() => terminal.everything().length).toBeGreaterThan(before);
    more = (await terminal.until(/d details[^]*›/)).includes("more lines");
  }
  const all = terminal.everything().join("\n");
  const lines = Number(/Create \/workspace\/deepagent-report\.md \((\d+) lines\)/.exec(all)?.[1]);
  expect(lines).toBeGreaterThan(100);
  expect(all).toMatch(new RegExp(`^ +${lines} \\+ `, "m"));
  expect(all).not.toContain("diff cut");
  terminal.type("a");
  expect(await terminal.exited).toBe(0);
});

test("a question that is answered elsewhere goes away, and the run goes on", async () => {
  const call = { name: "write_file", args: { file_path: "/workspace/a.md", content: "a" } };
  const terminal = await play({
    columns: 80,
    args: ["run", "Write"],
    main: [{ toolCalls: [call] }, { text: "Written." }],
  });
  await terminal.until(/d details/);
  await terminal.home.bin("runs", "answer", "last", "--approve");
  const text = await terminal.until(/decided elsewhere[^]*Written\.[^]*Next task/);
  expect(text).not.toContain("d details");
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
});

test("Ctrl-C at a question leaves the run for later, with the cursor and the keys as they were", async () => {
  const call = { name: "write_file", args: { file_path: "/workspace/a.md", content: "a" } };
  const terminal = await play({ columns: 80, args: ["run", "Write"], main: [{ toolCalls: [call] }] });
  await terminal.until(/d details/);
  expect(terminal.bells()).toBe(1);
  // Keys that mean nothing leave nothing behind, however many they are.
  for (let count = 0; count < 15; count += 1) {
    terminal.type("x");
    await delay(50);
  }
  terminal.type("\u0003");
  expect(await terminal.exited).toBe(1);
  expect(terminal.everything().join("\n")).not.toMatch(/warning/i);
  expect(terminal.everything().join("\n")).toMatch(/is waiting for approval[^]*runs answer run_/);
  expect(terminal.output().lastIndexOf("\u001b[?25h")).toBeGreaterThan(
    terminal.output().lastIndexOf("\u001b[?25l"),
  );
});

test("a person goes on in the same conversation, and an empty line ends it", async () => {
  const terminal = await play({
    columns: 80,
    args: ["run"],
    main: [{ text: "## Four\n\nIt is **4**." }, { text: "It is still 4." }],
    env: { DEEPAGENT_NOTIFY: "off" },
  });
  await terminal.until(/Task ›/);
  terminal.type("two and two\r");
  await terminal.until(/\nFour\n\nIt is 4\.\n[^]*Next task/);
  terminal.type("and now?\r");
  await terminal.until(/still 4[^]*Next task/);
  terminal.type("\u0004");
  expect(await terminal.exited).toBe(0);
  expect(terminal.bells()).toBe(0);
  const { requests } = terminal.model;
  expect(
    requests
      .at(-1)
      ?.messages.filter(({ role }) => role === "user")
      .map(({ text }) => text),
  ).toEqual([expect.stringContaining("two and two"), expect.stringContaining("and now?")]);
});

test("alone at a terminal the program says what it is, what is missing and what comes next", async () => {
  const terminal = await play({ columns: 100, args: [], main: [] });
  expect(await terminal.exited).toBe(0);
  const lines = terminal.screen();
  expect(lines.length).toBeLessThan(20);
  expect(lines.join("\n")).toMatch(/MCP server[^]* Model [^]* Client [^]*Next: [^]* init[^]*doctor/);
});

test("a terminal that is closed parks its run, which is then shown as one that waits", async () => {
  const terminal = await play({
    columns: 80,
    args: ["run", "Compare"],
    main: [delegate(["Wait."])],
    subagent: () => ({ fault: "hang" }),
  });
  await terminal.until(/1 of 1 agent at work/);
  const pid = await terminal.pid;
  await terminal.hangUp();
  await expect.poll(() => isAlive(pid)).toBe(false);
  const { home } = terminal;
  expect((await home.bin("runs", "list")).stdout).toMatch(/ waiting +Compare/);
  const { stdout } = await home.bin("runs", "show", "last");
  expect(stdout).toMatch(/◌ waits for a server of its workspace\n[^]*\n◌ run_\S+ waiting · /);
  expect(stdout).not.toMatch(/▸|working/);
  expect(stdout).toMatch(/No server of its workspace is running\.[^]* run --resume run_/);
});

test("a list fits a narrow terminal, and names runs by the beginning of their ids", async () => {
  const home = terminalHome();
  await waitingRun(home);
  const env = { ...cleanEnv(), ...home.env };
  const cwd = home.workspace;
  const listed = openTerminal([process.execPath, await program(), "runs", "list"], { columns: 40, cwd, env });
  expect(await listed.exited).toBe(0);
  expect(listed.everything()).toEqual([expect.stringMatching(/^run_\S{8} {2}needs you {2}list every TO…$/)]);
});

test("a reader that leaves ends the program, without an error", async () => {
  const home = terminalHome();
  const command = `${process.execPath} ${await program()} --help | head -1; echo "\${PIPESTATUS[@]}"`;
  const terminal = openTerminal(["bash", "-c", command], {
    columns: 80,
    cwd: home.workspace,
    env: cleanEnv(),
  });
  expect(await terminal.exited).toBe(0);
  expect(terminal.everything()).toEqual([expect.stringContaining("MCP server"), "0 0"]);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test.each([
  ["help", ["--help"]],
  ["the help of a command", ["serve", "--help"]],
  ["doctor", ["doctor", "--offline"]],
  ["an error", ["run", "--modle", "offline", "--no-such-flag", "and an argument that is not expected here"]],
])("%s breaks between words on 80 columns", async (_name, args) => {
  const home = terminalHome();
  const terminal = openTerminal([process.execPath, await program(), ...args], {
    columns: 80,
    cwd: home.workspace,
    env: { ...cleanEnv(), ...home.env },
  });
  await terminal.exited;
  const lines = Buffer.from(terminal.output(), "latin1").toString("utf8").split("\r\n");
  // Indented commands and JSON, which people copy, stay whole.
  const prose = lines.filter((line) => !line.startsWith("  deepagent-mcp ") && !line.startsWith("  {"));
  for (const line of prose) expect(displayWidth(line)).toBeLessThanOrEqual(80);
});
