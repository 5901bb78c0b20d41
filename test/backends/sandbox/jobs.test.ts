import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { ExecuteOptions, ExecuteResponse, JobResult } from "../../../src/backends/executor.ts";
import { BaseSandbox } from "../../../src/backends/sandbox/base-sandbox.ts";
import { createSandbox, type OpenSandbox } from "../../../src/backends/sandbox/create-sandbox.ts";
import { LocalShellBackend } from "../../../src/backends/sandbox/shell-backend.ts";
import { programPath } from "../../support/program-path.ts";
import { CONTAINERS } from "./containers.ts";
import { modalPackage, Provider } from "./provider-stand-ins.ts";
import { folder, isAsleep, uniqueSleep, until } from "./support.ts";

/** A sandbox that is nothing but a way to run command lines, with the programs in `path`. */
class AnySandbox extends BaseSandbox {
  readonly id = "any";
  readonly #shell: LocalShellBackend;
  readonly #path: string | undefined;

  constructor(rootDir: string, path?: string) {
    super({ root: rootDir }, "none");
    this.#shell = new LocalShellBackend({ rootDir, virtualMode: true });
    this.#path = path;
  }

  execute(command: string, { cwd, env }: ExecuteOptions = {}): Promise<ExecuteResponse> {
    const place = cwd === undefined ? {} : { cwd };
    if (this.#path === undefined) return this.#shell.execute(command, { env: env ?? {}, ...place });
    const more = { ...env, COMMAND: command, PATH: this.#path };
    return this.#shell.execute('exec busybox sh -c "$COMMAND"', { env: more, ...place });
  }

  async close(): Promise<void> {
    await this.#shell.execute(this.jobs.close());
    await this.#shell.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

type Sandbox = OpenSandbox & Required<Pick<OpenSandbox, "jobs">>;

const closing = <Opened extends OpenSandbox>(sandbox: Opened): Opened => {
  onTestFinished(() => sandbox.close());
  return sandbox;
};

async function busybox(): Promise<Sandbox> {
  const path = folder();
  const program = programPath("busybox") ?? "";
  execFileSync(program, ["--install", "-s", path]);
  if (!existsSync(join(path, "busybox"))) symlinkSync(program, join(path, "busybox"));
  return closing(new AnySandbox(folder(), path));
}

const modal = async (root: string, service: Provider, sandboxId?: string): Promise<Sandbox> => {
  const options = { provider: "modal", workdir: root, ...(sandboxId && { sandboxId }) } as const;
  const opened = closing(await createSandbox(options, async () => modalPackage(service)));
  return opened as Sandbox; // it is a BaseSandbox
};

beforeEach(() => {
  vi.stubEnv("MODAL_TOKEN_ID", "id");
  vi.stubEnv("MODAL_TOKEN_SECRET", "secret");
  return () => void vi.unstubAllEnvs();
});

const SANDBOXES: Record<string, { tags: string[]; open(): Promise<Sandbox> }> = {
  "this machine": {
    tags: [],
    open: async () => closing(new LocalShellBackend({ rootDir: folder(), virtualMode: true })),
  },
  "a sandbox that runs command lines": { tags: [], open: async () => closing(new AnySandbox(folder())) },
  "a sandbox with BusyBox": { tags: ["busybox"], open: busybox },
  "a sandbox at a provider": {
    tags: ["long"],
    open: async () => {
      const [root, service] = [join(folder(), "work"), new Provider()];
      return modal(root, service, (await modal(root, service)).id);
    },
  },
  "a container": {
    tags: ["podman", "long"],
    open: async () => closing(await createSandbox({ provider: "docker", ...CONTAINERS })) as Sandbox,
  },
};

/** Reads a job until its state fits. */
async function readUntil({ jobs }: Sandbox, id: string, fits: (read: JobResult) => boolean) {
  for (;;) {
    const read = await jobs.read(id);
    if (fits(read) || read.error !== undefined) return read;
    await delay(20);
  }
}

const hasEnded = ({ job }: JobResult): boolean => job?.exitCode !== undefined;

async function start(sandbox: Sandbox, command: string, options: ExecuteOptions = {}): Promise<string> {
  const { job, error } = await sandbox.jobs.start(command, options);
  if (job === undefined) throw new Error(error);
  return job.id;
}

for (const [name, { tags, open }] of Object.entries(SANDBOXES))
  describe(`jobs in ${name}`, { tags }, () => {
    it("go on while other commands run, and their output can be read meanwhile", async () => {
      const sandbox = await open();
      const command = "echo begun; until [ -e go ]; do sleep 0.05; done; echo 가; exit 3";
      const id = await start(sandbox, command);
      expect(await readUntil(sandbox, id, ({ output = "" }) => output !== "")).toMatchObject({
        job: { id, command },
        output: "begun\n",
        truncated: false,
      });
      expect(await sandbox.jobs.list()).toMatchObject([{ id, command }]);
      await sandbox.execute("touch go");
      const end = await readUntil(sandbox, id, hasEnded);
      expect(end).toMatchObject({ output: "begun\n가\n", job: { exitCode: 3 } });
      expect(await sandbox.jobs.list()).toMatchObject([{ id, exitCode: 3 }]);
      expect(await sandbox.jobs.stop(id)).toEqual(end);
    });

    it("start in the directory of the call, with its variables and without input", async () => {
      const sandbox = await open();
      await sandbox.write("/deep/er/a.txt", "here\n");
      const id = await start(sandbox, `cat a.txt - ; echo "$WORD"`, {
        cwd: "/deep/er",
        env: { WORD: `it's "so" $x` },
      });
      expect((await readUntil(sandbox, id, hasEnded)).output).toBe(`here\nit's "so" $x\n`);
      const { job, error } = await sandbox.jobs.start("ls", { cwd: "/none" });
      expect(job).toBeUndefined();
      expect(error).toMatch(/none/);
    });

    it("are asked to end, with everything that they started", async () => {
      const sandbox = await open();
      const id = await start(sandbox, `trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done`);
      await readUntil(sandbox, id, ({ output = "" }) => output.startsWith("up"));
      expect(await sandbox.jobs.stop(id)).toMatchObject({
        output: expect.stringMatching(/^up\n.*bye\n$/s),
        job: { exitCode: 5 },
      });
      const deaf = `trap '' TERM; setsid sh -c 'trap "" TERM; while :; do sleep 1; done' & echo up; wait`;
      const other = await start(sandbox, deaf);
      await readUntil(sandbox, other, ({ output = "" }) => output !== "");
      expect((await sandbox.jobs.stop(other)).job?.exitCode).toBe(137);
    });

    it("last as long as a program that they left, and keep the beginning of a long output", async () => {
      const sandbox = await open();
      const left = await start(sandbox, "(until [ -e go ]; do sleep 0.05; done) >/dev/null 2>&1 & echo out");
      await readUntil(sandbox, left, ({ output = "" }) => output !== "");
      expect(hasEnded(await sandbox.jobs.read(left))).toBe(false);
      await sandbox.execute("touch go");
      expect((await readUntil(sandbox, left, hasEnded)).job?.exitCode).toBe(0);
      const loud = await start(sandbox, "yes 0123456789 | head -c 9000000");
      const { output = "", truncated, job } = await readUntil(sandbox, loud, hasEnded);
      expect({ truncated, exitCode: job?.exitCode }).toEqual({ truncated: true, exitCode: 0 });
      expect(output.slice(0, 22)).toBe("0123456789\n0123456789\n");
      expect(output.length).toBeLessThan(100_100);
    });

    it("are limited in number, and an unknown one is named", async () => {
      const sandbox = await open();
      const started = Array.from({ length: 16 }, () => start(sandbox, "sleep 1000"));
      const [first = ""] = await Promise.all(started);
      const full = { code: "unsupported", error: "16 background jobs are already running; stop one first" };
      expect(await sandbox.jobs.start("ls")).toEqual(full);
      await sandbox.jobs.stop(first);
      expect((await sandbox.jobs.start("ls")).job).toBeDefined();
      expect(await sandbox.jobs.read("job_none")).toMatchObject({ code: "not_found" });
      expect(await sandbox.jobs.stop("job_none")).toMatchObject({ code: "not_found" });
    });

    it("end with the sandbox", async () => {
      const sandbox = await open();
      const seconds = uniqueSleep();
      await start(sandbox, `setsid sleep ${seconds} & sleep ${seconds}`);
      await until(() => isAsleep(seconds, 2));
      await sandbox.close();
      await until(() => !isAsleep(seconds));
    });
  });

describe("a sandbox that stays", () => {
  it("is left without jobs, leftovers and files of jobs", async () => {
    const [root, service] = [join(folder(), "work"), new Provider()];
    const first = await modal(root, service);
    const again = await modal(root, service, first.id);
    const [job, left] = [uniqueSleep(), uniqueSleep()];
    const earlier = readdirSync("/tmp");
    await start(again, `sleep ${job}`);
    const others = readdirSync("/tmp").filter((one) => /deepagent-jobs/.test(one) && !earlier.includes(one));
    await again.execute(`sleep ${left} >/dev/null 2>&1 &`);
    await until(() => isAsleep(job) && isAsleep(left));
    await again.close();
    await until(() => !isAsleep(job) && !isAsleep(left));
    expect(readdirSync("/tmp").filter((one) => others.includes(one))).toEqual([]);
    expect((await first.execute("echo fine")).output).toBe("fine\n");
  });
});

describe("a job whose server is gone", () => {
  it("ends when nobody has renewed it", async () => {
    // The minutes of the supervisor pass at once.
    const path = folder();
    const sleep = '#!/bin/sh\n[ "$1" = 60 ] || exec /bin/sleep "$@"\n';
    writeFileSync(join(path, "sleep"), sleep, { mode: 0o755 });
    const sandbox = closing(new AnySandbox(folder()));
    const env = { PATH: `${path}:${process.env["PATH"] ?? ""}` };
    const id = await start(sandbox, "sleep 1000", { env });
    expect((await readUntil(sandbox, id, hasEnded)).job?.exitCode).toBe(137);
  });
});
