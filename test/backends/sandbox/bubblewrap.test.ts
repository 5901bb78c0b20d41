import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { constants } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  visiblePath,
  type BubblewrapBackend,
  type BubblewrapOptions,
  openBubblewrap,
  probeBubblewrap,
} from "../../../src/backends/sandbox/bubblewrap.ts";
import { cgroupParent, callNumbers } from "../../../src/backends/sandbox/process-limits.ts";
import { unattended } from "../../../src/backends/sandbox/environment.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { folder, isAsleep, uniqueSleep, until } from "./support.ts";
import { addressOf } from "../../support/http-address.ts";

const HOUR = 3_600_000;

const probe = await probeBubblewrap({ rootDir: import.meta.dirname });

async function open(options: Partial<BubblewrapOptions> = {}): Promise<BubblewrapBackend & { root: string }> {
  const root = folder();
  const opened = await openBubblewrap({ rootDir: root, ...options });
  if (!opened.ok) throw new Error(opened.reason);
  onTestFinished(() => opened.backend.close());
  return Object.assign(opened.backend, { root });
}

/** Control groups that this process has made and not removed. */
const ownCgroups = (): string[] => {
  const parent = cgroupParent("pids");
  return parent === undefined
    ? []
    : readdirSync(parent).filter((name) => name.startsWith(`deepagent-${process.pid}-`));
};

describe("BubblewrapBackend", { tags: "bwrap" }, () => {
  it("runs commands at the path under which the agent knows the folder", async () => {
    const sandbox = await open();
    await sandbox.write("/src/a.txt", "text\n");
    expect(await sandbox.execute("pwd; cat src/a.txt")).toEqual({
      output: "/workspace\ntext\n",
      exitCode: 0,
      truncated: false,
    });
    expect((await sandbox.execute("pwd", { cwd: "/src" })).output).toBe("/workspace/src\n");
    await sandbox.execute("echo made > /workspace/b.txt");
    expect((await sandbox.read("/b.txt")).content).toBe("made\n");
    expect(sandbox.capabilities).toMatchObject({ isolation: "process", executeOptions: true });
  });

  it("says when the directory does not exist, and runs nothing", async () => {
    const sandbox = await open();
    const result = await sandbox.execute("touch /workspace/made", { cwd: "/none" });
    expect(result.exitCode).toBe(1);
    expect(result.output).toMatch(/\/workspace\/none/);
    expect((await sandbox.ls("/")).files).toEqual([]);
  });

  it("lets nothing be changed but the folder and scratch space", async () => {
    const sandbox = await open();
    const outside = folder();
    writeFileSync(join(outside, "secret"), "secret");
    const paths = [
      `${outside}/x`,
      "/x",
      "/usr/x",
      "/etc/x",
      "/dev/x",
      "/proc/sys/kernel/domainname",
      "/root/x",
    ];
    for (const path of paths) {
      expect((await sandbox.execute(`echo x > ${path}`)).exitCode, path).not.toBe(0);
    }
    expect((await sandbox.execute(`cat ${outside}/secret`)).exitCode).not.toBe(0);
    expect(await sandbox.execute("echo x > /tmp/x && cat /tmp/x")).toMatchObject({ output: "x\n" });
    expect((await sandbox.execute("ls -A /tmp")).output).toBe("x\n");
    expect((await (await open()).execute("ls -A /tmp")).output).toBe("");
  });

  it("shows no files of users and of the system's secrets", async () => {
    const sandbox = await open();
    const { output } = await sandbox.execute(
      "ls -d /home/* /root /var /run /etc/shadow /etc/ssh /sys 2>/dev/null",
    );
    expect(output).toBe("");
  });

  it("is not left through links that lead out of the folder", async () => {
    const sandbox = await open();
    const outside = folder();
    writeFileSync(join(outside, "secret"), "secret");
    symlinkSync(outside, join(sandbox.root, "out"));
    expect((await sandbox.execute("cat out/secret")).exitCode).not.toBe(0);
    expect((await sandbox.execute("echo x > out/made")).exitCode).not.toBe(0);
    expect((await sandbox.execute("ln /usr/bin/env hard")).exitCode).not.toBe(0);
    await sandbox.execute(`ln -s '${outside}/secret' soft`);
    expect((await sandbox.read("/soft")).code).toBe("outside_root");
    writeFileSync(join(sandbox.root, "own"), "own");
    linkSync(join(sandbox.root, "own"), join(sandbox.root, "own-too"));
    expect((await sandbox.execute("cat own-too")).output).toBe("own");
  });

  it("covers what is hidden, wherever it would be seen, and lets nothing be moved from under the cover", async () => {
    const root = folder();
    mkdirSync(join(root, "share/program"), { recursive: true });
    for (const path of ["share/program/key", "settings.json", "share/other"])
      writeFileSync(join(root, path), "secret");
    symlinkSync("share/program", join(root, "link"));
    const hidden = [join(root, "share/program"), join(root, "settings.json"), join(root, "missing")];
    const opened = await openBubblewrap({
      rootDir: root,
      hidden,
      readOnly: [{ folder: root, at: "/again" }],
    });
    if (!opened.ok) throw new Error(opened.reason);
    onTestFinished(() => opened.backend.close());
    const run = (command: string) => opened.backend.execute(command);
    const { output } = await run(
      "cat share/other; ls share/program link /again/share/program; cat */*/key */key settings.json /again/settings.json",
    );
    expect(output.match(/secret/g)).toHaveLength(1);
    expect(output).not.toMatch(/^key$/m);
    for (const change of [
      "touch share/program/planted",
      "mv share moved",
      "mv share/program moved",
      "rm -rf share",
      "echo planted > settings.json",
      "mv settings.json moved",
      "umount share/program",
    ]) {
      expect((await run(change)).exitCode, change).not.toBe(0);
    }
    expect((await run("cat moved/*; find . -name key")).output).not.toContain("secret");
    expect(readFileSync(join(root, "share/program/key"), "utf8")).toBe("secret");
    expect(readFileSync(join(root, "settings.json"), "utf8")).toBe("secret");
    expect((await run("echo new > share/new && cat share/new")).output).toBe("new\n");
  });

  it("has no network, not even to this machine", async () => {
    const server = createServer((_request, response) => response.end("reached"));
    const { port } = new URL(await addressOf(server));
    const sandbox = await open();
    const connect = `exec 3<>/dev/tcp/127.0.0.1/${port} && echo reached`;
    const result = await sandbox.execute(connect);
    expect(result.exitCode).not.toBe(0);
    expect(result.output).not.toContain("reached\n");
    expect((await sandbox.execute("tail -n +3 /proc/net/dev | grep -v lo: | wc -l")).output).toBe("0\n");
  });

  it("has no privileges, and gets none in a namespace of its own", async () => {
    const sandbox = await open();
    const { output } = await sandbox.execute("grep -h Cap /proc/self/status | cut -f2 | sort -u; id -u");
    expect(output.split("\n")[0]).toBe("0000000000000000");
    expect(output.split("\n")[1]).not.toBe("0");
    if (probe.ok && probe.hasSizeLimits) {
      expect((await sandbox.execute("unshare --user --map-root-user true")).exitCode).not.toBe(0);
    }
  });

  it.skipIf(spawnSync("perl", ["-e", "1"]).status !== 0)("makes no refused call (needs perl)", async () => {
    const sandbox = await open();
    const processor = process.arch === "arm64" ? "arm64" : "x64";
    const numbers = new Map([...callNumbers("refused", processor), ...callNumbers("special", processor)]);
    const errorOf = async (name: string, ...args: number[]): Promise<string> => {
      const call = [numbers.get(name), ...args, 0, 0, 0].join(", ");
      return (await sandbox.execute(`perl -MPOSIX -e '$! = 0; syscall(${call}); print $! + 0'`)).output;
    };
    const { EPERM, ENOSYS } = constants.errno;
    for (const name of ["keyctl", "add_key", "request_key", "io_uring_setup", "bpf", "unshare", "mount"]) {
      expect(await errorOf(name), name).toBe(String(EPERM));
    }
    expect(await errorOf("clone3")).toBe(String(ENOSYS));
    expect(await errorOf("socket", 38, 5)).toBe(String(EPERM));
    expect(await errorOf("fchmod", 1, 0o4755)).toBe(String(EPERM));
  });

  it("leaves no file that lends the rights of its owner", async () => {
    const sandbox = await open();
    const { output } = await sandbox.execute(
      "cp /bin/sh shell; for mode in 4755 2755 6755; do chmod $mode shell && echo set; done; umask 0; chmod 1777 .; chmod 755 shell; mkdir -m 700 plain",
    );
    expect(output).not.toMatch(/^set$/m);
    expect(statSync(join(sandbox.root, "shell")).mode & 0o7777).toBe(0o755);
    expect(statSync(join(sandbox.root, "plain")).mode & 0o7777).toBe(0o700);
  });

  it("tells nothing of this machine's folders in what commands can read of processes", async () => {
    const sandbox = await open({ env: { ADDED: "the value" } });
    const { output } = await sandbox.execute("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; cat /proc/1/environ");
    expect(output).toContain("bwrap --args");
    expect(output).not.toContain(sandbox.root);
    expect(output).not.toContain("the value");
    expect(output).not.toContain(process.env["PATH"]);
    expect((await sandbox.execute("cat /proc/keys /proc/key-users")).exitCode).not.toBe(0);
  });

  it("takes no variable that would become an argument of Bubblewrap", async () => {
    const sandbox = await open();
    const env = { ADDED: "x\0--bind\0/\0/host" };
    expect(await sandbox.execute("ls /host", { env })).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining("NUL"),
    });
  });

  it("has an environment without the server's variables", async () => {
    process.env["SANDBOX_TEST_SECRET"] = "secret";
    onTestFinished(() => void delete process.env["SANDBOX_TEST_SECRET"]);
    const sandbox = await open({ env: { ADDED: "yes" } });
    const { output } = await sandbox.execute("env | cut -d= -f1 | sort", { env: { CALL: "yes" } });
    const expected = [
      "ADDED",
      "CALL",
      "HOME",
      "LANG",
      "OLDPWD",
      "PATH",
      "PWD",
      "SHLVL",
      "TERM",
      "TMPDIR",
      "TZ",
      "_",
      ...Object.keys(unattended({}, {}, true)),
    ];
    expect(
      output
        .trim()
        .split("\n")
        .filter((name) => !expected.includes(name)),
    ).toEqual([]);
    expect(output).toContain("ADDED");
    expect(output).toContain("CALL");
  });

  it("sees no processes but its own, and ends all of them with the command", async () => {
    const sandbox = await open();
    const seconds = uniqueSleep();
    expect((await sandbox.execute(`kill -0 ${process.pid} 2>/dev/null && echo seen`)).output).toBe("");
    const result = await sandbox.execute(`setsid sleep ${seconds} & echo done`);
    expect(result.output).toBe("done\n");
    await until(() => !isAsleep(seconds));
  });

  it("ends everything at the time limit, and answers at once", async () => {
    const sandbox = await open();
    const seconds = uniqueSleep();
    const command = `trap '' TERM; echo begun; setsid sleep ${seconds} & sleep ${seconds}`;
    const time = handSetTime();
    const limit = { timeout: 3600, onOutput: () => time.pass(HOUR) };
    expect(await sandbox.execute(command, limit)).toEqual({
      output: "begun\nError: Command timed out after 3600 seconds.",
      exitCode: 124,
      truncated: false,
      timedOut: true,
    });
    await until(() => !isAsleep(seconds));
  });

  it("limits memory, scratch space and files of dying programs", async () => {
    const sandbox = await open({ memoryMb: 64, scratchMb: 8 });
    const large = await sandbox.execute("head -c 2000M /dev/zero | tail -c 2000M | wc -c");
    expect(large.output).not.toContain("2097152000\n");
    expect(large.output).toContain("execute.memoryMb");
    expect((await sandbox.execute("ulimit -d; ulimit -v; ulimit -c")).output).toBe(
      "unlimited\nunlimited\n0\n",
    );
    if (probe.ok && probe.hasSizeLimits) {
      expect((await sandbox.execute("head -c 20M /dev/zero > /tmp/x")).exitCode).not.toBe(0);
      expect((await sandbox.execute("head -c 20M /dev/zero > /dev/shm/x")).exitCode).not.toBe(0);
    }
  });

  // The inner shell gives up when it cannot start another; the outer one counts without starting any.
  const SPAWN = "sh -c 'for i in $(seq 100); do sleep 100 & done' 2>/dev/null; set -- /proc/[0-9]*; echo $#";
  const isLimited = process.getuid?.() !== 0 || cgroupParent("pids") !== undefined;
  const limitReason = isLimited ? "" : " (root, and no control group can be made here)";

  it.skipIf(!isLimited)(`limits the number of processes${limitReason}`, async () => {
    const sandbox = await open({ maxProcesses: 30 });
    const count = Number((await sandbox.execute(SPAWN)).output);
    expect(count).toBeGreaterThanOrEqual(25);
    expect(count).toBeLessThanOrEqual(35);
    // The limit is for what runs, not for what ever ran.
    expect((await sandbox.execute("for i in $(seq 60); do /bin/true; done; echo fine")).output).toBe(
      "fine\n",
    );
  });

  it.skipIf(!isLimited)(`outlives a fork bomb${limitReason}`, async () => {
    const sandbox = await open({ maxProcesses: 60 });
    const seconds = uniqueSleep();
    const bomb = `bomb() { sleep ${seconds} & bomb | bomb & }; bomb; sleep ${seconds}`;
    const result = await sandbox.execute(bomb, { timeout: 1.5 });
    expect(result.exitCode).not.toBe(0);
    await until(() => !isAsleep(seconds));
    expect((await sandbox.execute("echo fine")).output).toBe("fine\n");
    await sandbox.close();
    expect(ownCgroups()).toEqual([]);
  });

  const canBecomeNobody = process.getuid?.() === 0 && existsSync("/usr/bin/setpriv");
  it.skipIf(!canBecomeNobody)("limits other users without a control group (needs root)", async () => {
    const scripts = folder();
    const parent = cgroupParent("pids");
    const leave = parent === undefined ? "" : `echo $$ > ${parent}/cgroup.procs\n`;
    const become = "exec setpriv --reuid 65534 --regid 65534 --clear-groups bwrap";
    const bwrap = join(scripts, "bwrap");
    writeFileSync(bwrap, `#!/bin/sh\n${leave}${become} "$@"\n`, { mode: 0o755 });
    chmodSync(scripts, 0o755);
    const root = folder();
    chmodSync(root, 0o777);
    const sandbox = await open({ rootDir: root, bwrap, maxProcesses: 30 });
    const count = Number((await sandbox.execute(SPAWN)).output);
    expect(count).toBeGreaterThanOrEqual(25);
    expect(count).toBeLessThanOrEqual(35);
  });

  it("shows further folders, read-only", async () => {
    const tools = folder();
    mkdirSync(join(tools, "bin"));
    writeFileSync(join(tools, "bin", "hello"), "#!/bin/sh\necho hello\n", { mode: 0o755 });
    const sandbox = await open({ readOnly: [{ folder: tools, at: "/tools" }] });
    expect((await sandbox.execute("/tools/bin/hello; echo x > /tools/x")).output).toMatch(/^hello\n/);
    expect((await sandbox.execute("echo x > /tools/x")).exitCode).not.toBe(0);
  });

  it("holds a bounded part of endless output", async () => {
    const sandbox = await open({ maxOutputBytes: 1000 });
    const result = await sandbox.execute("yes | head -c 10000000");
    expect(result).toMatchObject({ exitCode: 0, truncated: true });
    expect(result.output).toMatch(/\n\.\.\. Output truncated at 1000 bytes\.$/);
  });

  it("runs commands side by side", async () => {
    const sandbox = await open();
    const numbers = Array.from({ length: 10 }, (_, index) => index);
    await Promise.all(numbers.map((number) => sandbox.execute(`echo ${number} > ${number}.txt`)));
    for (const number of numbers)
      expect(readFileSync(join(sandbox.root, `${number}.txt`), "utf8")).toBe(`${number}\n`);
  });
});

it("visiblePath keeps what the sandbox can see, once", () => {
  const mounts = [
    { folder: "/home/a/node", at: "/home/a/node" },
    { folder: "/home/a/x", at: "/skills/x" },
  ];
  expect(visiblePath("/home/a/node/bin:/home/a/bin:/usr/bin:/usr/bin:/usrx:/home/a/x:", mounts)).toBe(
    "/home/a/node/bin:/usr/bin",
  );
});
