import { describe, expect, it, onTestFinished } from "vitest";
import { createSandbox } from "../../../src/backends/sandbox/create-sandbox.ts";
import { LocalShellBackend } from "../../../src/backends/sandbox/shell-backend.ts";
import { commandLines, folder, isAsleep, isBeingMade, manyMounts, uniqueSleep, until } from "./support.ts";

/** Commands that do not end by themselves: what is special about them, and how many of their processes sleep. */
const UNWILLING: [name: string, sleeping: number, command: (sleep: string) => string][] = [
  ["is stopped", 1, (sleep) => `${sleep} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $! $$`],
  ["ignores requests", 2, (sleep) => `setsid sh -c "trap '' TERM; ${sleep}; ${sleep}" & ${sleep}`],
  ["has lost its parent", 3, (sleep) => `(setsid sh -c "${sleep} & ${sleep} &" &); ${sleep}`],
  ["writes without end", 2, (sleep) => `trap '' TERM; yes & setsid sh -c "${sleep} & yes" & ${sleep}`],
  [
    "starts others without end",
    5,
    (sleep) => `setsid sh -c "while :; do ${sleep} & sleep 0.01; done" & ${sleep}`,
  ],
];

const PROVIDERS = [
  { provider: "local", title: "a local shell", needs: {} },
  { provider: "bubblewrap", title: "Bubblewrap", needs: { tags: "bwrap" } },
] as const;

describe.each(PROVIDERS)("a stopped command of $title", ({ provider, needs }) => {
  it.each(UNWILLING)("ends with what %s", needs, async (_, sleeping, command) => {
    const sandbox = await createSandbox({ provider, rootDir: folder() });
    onTestFinished(() => sandbox.close());
    const seconds = uniqueSleep();
    const controller = new AbortController();
    const answer = sandbox.execute(command(`sleep ${seconds}`), { signal: controller.signal });
    await until(() => isAsleep(seconds, sleeping));
    controller.abort();
    expect((await answer).exitCode).toBeNull();
    await until(() => !isAsleep(seconds));
  });
});

describe("Bubblewrap", { tags: "bwrap" }, () => {
  it("leaves nothing of a command that is aborted while its sandbox is being made", async () => {
    const rootDir = folder();
    const sandbox = await createSandbox({ provider: "bubblewrap", rootDir, readOnly: manyMounts(200) });
    onTestFinished(() => sandbox.close());
    const controller = new AbortController();
    const seconds = uniqueSleep();
    const answer = sandbox.execute(`: > begun; sleep ${seconds}`, { signal: controller.signal });
    await until(() => isBeingMade(seconds));
    controller.abort();
    expect(await answer).toEqual({ output: "", exitCode: null, truncated: false });
    await until(() => !commandLines().some((line) => line.includes(seconds)));
    expect((await sandbox.ls("/")).files).toEqual([]);
  });
});

describe("a local shell", () => {
  it("ends no other command with one that is aborted, whatever their numbers", async () => {
    const shell = open();
    const [aborted, other] = [uniqueSleep(), uniqueSleep()];
    const controller = new AbortController();
    const { signal } = controller;
    const first = shell.execute(`setsid sleep ${aborted} & sleep ${aborted}`, { signal });
    for (let number = 2; number < 12; number += 1) await shell.execute(":");
    const last = shell.jobs.start(`sleep ${other}`);
    await until(() => isAsleep(aborted, 2) && isAsleep(other));
    controller.abort();
    await first;
    await until(() => !isAsleep(aborted));
    expect(isAsleep(other)).toBe(true);
    const { job } = await shell.jobs.stop((await last).job?.id ?? "");
    expect(job?.exitCode).toBe(143);
  });

  it("ends what has left the group of a job that is stopped", async () => {
    const shell = open();
    const seconds = uniqueSleep();
    const { job } = await shell.jobs.start(`setsid sleep ${seconds} & sleep ${seconds}`);
    await until(() => isAsleep(seconds, 2));
    await shell.jobs.stop(job?.id ?? "");
    await until(() => !isAsleep(seconds));
  });

  it("tells nothing of a command after it was answered", async () => {
    const shell = open();
    const told: string[] = [];
    const command = "trap '' TERM; while :; do echo more; sleep 0.05; done";
    await shell.execute(command, { timeout: 0.3, onOutput: (chunk) => void told.push(chunk) });
    const before = told.length;
    expect((await shell.execute("sleep 0.5; echo after")).output).toBe("after\n");
    expect(told).toHaveLength(before);
  });
});

function open(): LocalShellBackend {
  const shell = new LocalShellBackend({ rootDir: folder(), virtualMode: true });
  onTestFinished(() => shell.close());
  return shell;
}
