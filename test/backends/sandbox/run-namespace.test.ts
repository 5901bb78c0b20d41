import { spawn } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type BubblewrapOptions,
  openBubblewrap,
  probeBubblewrap,
} from "../../../src/backends/sandbox/bubblewrap.ts";
import { MemoryWatch } from "../../../src/backends/sandbox/memory-watch.ts";
import { LocalShellBackend } from "../../../src/backends/sandbox/shell-backend.ts";
import { folder, isAsleep, uniqueSleep, until } from "./support.ts";

const probe = await probeBubblewrap({ rootDir: import.meta.dirname });
/** Machines without `nsenter` have a namespace for each command. */
const needs = { tags: "bwrap", skip: probe.ok && !probe.isShared };

async function open(options: Partial<BubblewrapOptions> = {}) {
  const opened = await openBubblewrap({ rootDir: folder(), ...options });
  if (!opened.ok) throw new Error(opened.reason);
  const { backend } = opened;
  onTestFinished(() => backend.close());
  return backend;
}

/** Processes of this one that hold the namespaces of a run. */
function holders(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const parent = / (\d+) /.exec(
          readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) \w/s, ""),
        )?.[1];
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return Number(parent) === process.pid && line.includes("holder");
      } catch {
        return false;
      }
    });
}

const SERVE =
  'perl -MIO::Socket::INET -e \'$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8177", Listen => 5, ReuseAddr => 1) or die; while ($c = $s->accept) { print $c "served\\n"; close $c }\'';
const ASK =
  "for i in $(seq 300); do (exec 3<>/dev/tcp/127.0.0.1/8177 && cat <&3) 2>/dev/null && break; sleep 0.1; done";

describe("commands of one run", needs, () => {
  it("share a network, /tmp and the home folder, and no other run has them", async () => {
    const [run, other] = [await open(), await open()];
    const { job } = await run.jobs.start(SERVE);
    await run.execute("echo log > /tmp/log; echo settings > ~/.toolrc; echo shared > /dev/shm/x");
    expect((await run.execute(`cat /tmp/log ~/.toolrc /dev/shm/x; ${ASK}`)).output).toBe(
      "log\nsettings\nshared\nserved\n",
    );
    const { output } = await other.execute(
      "ls -A /tmp /dev/shm; (exec 3<>/dev/tcp/127.0.0.1/8177) 2>/dev/null && echo reached; ls /sys 2>/dev/null",
    );
    expect(output).toBe("/dev/shm:\n\n/tmp:\n");
    await run.jobs.stop(job?.id ?? "");
  });

  it("leave programs running as a job, with its output, and end them with the run", async () => {
    const run = await open();
    const seconds = uniqueSleep();
    const command = `(echo later > /tmp/flag; sleep ${seconds}) & (until [ -e /tmp/go ]; do sleep 0.05; done; echo late) & echo now`;
    const { job, output, exitCode } = await run.execute(command, { keepPrograms: true });
    expect({ output, exitCode }).toEqual({ output: "now\n", exitCode: 0 });
    expect(await run.jobs.list()).toEqual([job]);
    await run.execute("touch /tmp/go");
    let read = await run.jobs.read(job?.id ?? "");
    while (!read.output?.includes("late")) read = await run.jobs.read(job?.id ?? "");
    expect(read).toMatchObject({ output: "now\nlate\n", job: { id: job?.id } });
    expect(isAsleep(seconds)).toBe(true);
    await run.close();
    await until(() => !isAsleep(seconds));
    expect(holders()).toEqual([]);
  });

  it("make no job of what ends by itself, and stop one with all it started", async () => {
    const run = await open();
    expect(await run.execute("echo done", { keepPrograms: true })).toEqual({
      output: "done\n",
      exitCode: 0,
      truncated: false,
    });
    const seconds = uniqueSleep();
    const { job } = await run.execute(`setsid sleep ${seconds} >/dev/null & exit 3`, { keepPrograms: true });
    const stopped = await run.jobs.stop(job?.id ?? "");
    expect(stopped.job?.exitCode).toBe(3);
    await until(() => !isAsleep(seconds));
  });

  it("see neither each other's processes nor those of the holder", async () => {
    const run = await open();
    const seconds = uniqueSleep();
    await run.jobs.start(`sleep ${seconds}`);
    await until(() => isAsleep(seconds));
    const { output } = await run.execute("cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    expect(output).not.toMatch(/holder|nsenter/);
    expect(output).not.toContain(`sleep ${seconds}`);
  });

  it("keep protected files protected as long as a program of the command lives", async () => {
    const root = folder();
    const run = await open({ rootDir: root, protectsStarters: true });
    const plant = "while :; do echo {} > .mcp.json; rmdir .mcp.json; done 2>/dev/null & echo begun";
    const { job } = await run.execute(plant, { keepPrograms: true });
    for (let count = 0; count < 5; count += 1) await run.execute("true");
    expect(() => readFileSync(join(root, ".mcp.json"))).toThrow(/EISDIR/);
    await run.jobs.stop(job?.id ?? "");
    await until(() => readdirSync(root).length === 0);
  });

  it("go on in a new one when the holder was killed, and the model is told", async () => {
    const run = await open();
    const seconds = uniqueSleep();
    await run.execute(`echo x > /tmp/x; sleep ${seconds} &`, { keepPrograms: true });
    for (const pid of holders()) process.kill(pid, "SIGKILL");
    await until(() => !isAsleep(seconds) && holders().length === 0);
    const { output } = await run.execute("ls -A /tmp; echo fine");
    expect(output).toMatch(/^fine\n\[\/tmp and the home folder were emptied/);
    expect((await run.execute("echo fine")).output).toBe("fine\n");
  });

  it("are told when /tmp is full, and go on once there is room", async () => {
    const run = await open({ scratchMb: 2 });
    const { output } = await run.execute("head -c 5M /dev/zero > /tmp/x");
    expect(output).toMatch(/has room for 2 MiB/);
    expect((await run.execute("rm /tmp/x; echo y > /tmp/y && cat /tmp/y")).output).toBe("y\n");
  });
});

describe("programs that a command leaves without a sandbox", () => {
  it("are a job until they end; a zombie is none", async () => {
    const shell = new LocalShellBackend({ rootDir: folder(), virtualMode: true });
    onTestFinished(() => shell.close());
    const seconds = uniqueSleep();
    const { job } = await shell.execute(`sleep ${seconds} & echo now`, { keepPrograms: true });
    expect(await shell.jobs.read(job?.id ?? "")).toMatchObject({ output: "now\n", job: { id: job?.id } });
    expect((await shell.jobs.stop(job?.id ?? "")).job?.exitCode).toBe(0);
    await until(() => !isAsleep(seconds));
    expect(await shell.execute("true & echo now", { keepPrograms: true })).not.toHaveProperty("job");
  });
});

describe("MemoryWatch", { tags: "bwrap" }, () => {
  it("ends the program that uses most, and none for memory that is only reserved", async () => {
    const grow = "my @kept; push @kept, 'x' x 1_000_000 for 1..300; print \"grown\\n\"; sleep 100";
    const small = spawn("sleep", ["100"], { stdio: "ignore" });
    const large = spawn("perl", ["-e", grow], { stdio: "ignore" });
    onTestFinished(() => void [small, large].map((child) => child.kill("SIGKILL")));
    const watch = new MemoryWatch(100_000_000, () => [small.pid ?? 0, large.pid ?? 0]);
    watch.start();
    await until(() => large.signalCode === "SIGKILL");
    expect({ small: small.signalCode, kills: watch.kills }).toEqual({ small: null, kills: 1 });
  });

  it("and the limit of a run is for all of its programs, not for addresses", needs, async () => {
    const root = folder();
    const reserve =
      "for (let i = 0; i < 8; i += 1) globalThis['m' + i] = new WebAssembly.Memory({ initial: 1, maximum: 65536 }); console.log('reserved');";
    writeFileSync(join(root, "w.mjs"), reserve);
    const run = await open({
      rootDir: root,
      memoryMb: 512,
      readOnly: [{ folder: process.execPath, at: "/node" }],
    });
    expect((await run.execute("/node w.mjs")).output).toBe("reserved\n");
  });
});
