// @module-tag python3
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { program } from "../../support/harness-stdio.ts";
import { type PseudoTerminal, openTerminal } from "../../support/pseudo-terminal.ts";
import { cleanEnv } from "../built-bin.ts";
import { terminalHome } from "../terminal-home.ts";
import { delegate, gate, play } from "./scene.ts";

/** What a person may type that a terminal would show, or do something at. */
const TYPED = "hello\r\r\u001b[A\u007f\u0013\u0011漢";
/** Says of the terminal, in a line of its own, whether it shows what is typed, line by line. */
const TELL = `echo "then $(stty -a | grep -oE -- '-?(icanon|echo|isig)\\b' | sort | tr '\\n' ' ')"`;
const AS_BEFORE = /then echo icanon isig/;

async function atWork(shell?: string): Promise<{ terminal: PseudoTerminal; open: () => void }> {
  const { open, opened } = gate();
  const terminal = await play({
    columns: 80,
    args: ["run", "Compare"],
    main: [delegate(["Look here.", "Look there."]), { text: "All compared." }],
    subagent: () => opened.then(() => ({ text: "Compared." })),
    ...(shell === undefined ? {} : { shell }),
  });
  await terminal.until(/2 of 2 agents at work/);
  return { terminal, open };
}

const isCursorShown = (terminal: PseudoTerminal): boolean =>
  terminal.output().lastIndexOf("\u001b[?25h") > terminal.output().lastIndexOf("\u001b[?25l");

test("keys that are typed while a run is drawn are not shown, and answer no later question", async () => {
  const { terminal, open } = await atWork(`"$@"; ${TELL}`);
  for (const key of TYPED) terminal.type(key);
  await delay(500);
  expect(terminal.everything().slice(0, 2).join("\n")).toMatch(/├─ . Look here .*\n.*└─ . Look there /);
  expect(terminal.everything()).toHaveLength(5);
  terminal.type("last words\r");
  open();
  await terminal.until(/Next task/);
  expect(terminal.everything().join("\n")).not.toMatch(/hello|漢|\^|last words/);
  terminal.type("\r");
  await terminal.until(AS_BEFORE);
});

test("Ctrl-C parks the run that is drawn, and leaves the terminal as it was", async () => {
  const { terminal } = await atWork(`"$@"; echo "code $?"; ${TELL}`);
  terminal.type("ab\u0003");
  const text = await terminal.until(AS_BEFORE);
  expect(text).toMatch(
    /◌ run_\S+ waiting · [^]*has not ended\. To continue it:[^]*--resume run_[^]*code 1\n/,
  );
  expect(isCursorShown(terminal)).toBe(true);
});

test.each(["TERM", "USR2", "QUIT"])("a SIG%s leaves the terminal as it was", async (signal) => {
  const home = terminalHome();
  const crash = join(home.workspace, "crash.cjs");
  writeFileSync(crash, `process.once("SIGUSR2", () => { throw new Error("a crash"); });`);
  const { opened } = gate();
  const terminal = await play({
    columns: 80,
    args: ["run", "Compare"],
    main: [delegate(["Look here."])],
    subagent: () => opened.then(() => ({ text: "" })),
    shell: `ulimit -c 0; bash -c 'echo "pid $$"; exec "$@"' bash "$@"; ${TELL}`,
    env: { NODE_OPTIONS: `--require ${crash}` },
  });
  const text = await terminal.until(/pid \d+[^]*1 of 1 agent at work/);
  process.kill(Number(/pid (\d+)/.exec(text)?.[1]), `SIG${signal}`);
  await terminal.until(AS_BEFORE);
  expect(isCursorShown(terminal)).toBe(true);
});

test("Ctrl-Z stops the program with the terminal as it was, and it goes on where it was", async () => {
  const { open, opened } = gate();
  const shell = await play({
    columns: 80,
    args: ["run", "Compare"],
    main: [delegate(["Look here."]), { text: "All compared." }],
    subagent: () => opened.then(() => ({ text: "Compared." })),
    shell: 'set -m; "$@"; echo stopped; ' + TELL + '; read -r _; fg > /dev/null; echo "code $?"',
  });
  await shell.until(/1 of 1 agent at work/);
  shell.type("\u001a");
  const stopped = await shell.until(AS_BEFORE);
  expect(stopped).not.toContain("agent at work");
  expect(isCursorShown(shell)).toBe(true);
  shell.type("\r");
  await shell.until(/stopped[^]*1 of 1 agent at work/);
  shell.type("typed again");
  await delay(300);
  open();
  await shell.until(/All compared\.[^]*Next task/);
  expect(shell.everything().join("\n")).not.toContain("typed again");
  shell.type("\r");
  await shell.until(/code 0/);
});

test("keys are swallowed too where the task comes from a file", async () => {
  const home = terminalHome();
  const task = join(home.workspace, "task.md");
  writeFileSync(task, "Compare");
  const { open, opened } = gate();
  const terminal = await play({
    columns: 80,
    args: ["run", "-", "--yes"],
    main: [delegate(["Look here."]), { text: "All compared." }],
    subagent: () => opened.then(() => ({ text: "Compared." })),
    shell: `"$@" < ${task}; ${TELL}`,
  });
  await terminal.until(/1 of 1 agent at work/);
  terminal.type("hello\r");
  await delay(300);
  open();
  await terminal.until(AS_BEFORE);
  expect(terminal.everything().join("\n")).not.toContain("hello");
});

test("Ctrl-C in the demo cancels its run", async () => {
  const home = terminalHome();
  const terminal = openTerminal([process.execPath, await program(), "demo"], {
    columns: 100,
    cwd: home.workspace,
    env: { ...cleanEnv(), HOME: home.workspace, TMPDIR: home.workspace },
  });
  await terminal.until(/agents at work/);
  terminal.type("\u0003");
  expect(await terminal.exited).toBe(1);
  expect(terminal.everything().join("\n")).toContain("Interrupted; the run was cancelled.");
});
