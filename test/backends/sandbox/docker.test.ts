import { randomBytes } from "node:crypto";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { createSandbox } from "../../../src/backends/sandbox/create-sandbox.ts";
import { type DockerSandbox, openDocker, withoutTtyNoise } from "../../../src/backends/sandbox/docker.ts";
import { SandboxError } from "../../../src/backends/sandbox/base-sandbox.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { BACKEND_SUITES } from "../../../testing/backend-contract.ts";
import { runContract } from "../contract/contract.ts";
import { containerIds, CONTAINERS as OPTIONS } from "./containers.ts";
import { isAsleep, uniqueSleep, until } from "./support.ts";

describe("DockerSandbox", { tags: ["podman", "long"] }, () => {
  it("runs commands as a plain user in the working directory, beside the file tools", async () => {
    const sandbox = await open();
    await sandbox.write("/src/a.txt", "text\n");
    expect(
      await sandbox.execute("cat src/a.txt; pwd; id -u; echo $EXTRA", { env: { EXTRA: "yes" } }),
    ).toEqual({
      output: "text\n/workspace\n1000\nyes\n",
      exitCode: 0,
      truncated: false,
    });
    expect(await sandbox.execute("pwd; exit 3", { cwd: "/src" })).toMatchObject({
      output: "/workspace/src\n",
      exitCode: 3,
    });
    await sandbox.execute("echo made > b.txt");
    expect((await sandbox.read("/b.txt")).content).toBe("made\n");
    expect(sandbox.capabilities).toMatchObject({ isolation: "container" });
  });

  it("gives commands no input", async () => {
    const sandbox = await open();
    expect(await sandbox.execute("cat; read x || echo none")).toMatchObject({
      output: "none\n",
      exitCode: 0,
    });
  });

  it("streams what a command prints, and holds a bounded part of it", async () => {
    const sandbox = await openDocker({ ...OPTIONS, maxOutputBytes: 1000 });
    onTestFinished(() => sandbox.close());
    const chunks: string[] = [];
    const result = await sandbox.execute("yes | head -c 5000000", {
      onOutput: (chunk) => chunks.push(chunk),
    });
    expect(result).toMatchObject({ exitCode: 0, truncated: true });
    expect(result.output).toMatch(/\n\.\.\. Output truncated at 1000 bytes\.$/);
    expect(chunks.join("")).toHaveLength(1000);
  });

  it("has no network and no privileges", async () => {
    const sandbox = await open();
    expect((await sandbox.execute("tail -n +3 /proc/net/dev | grep -vc lo:")).output).toBe("0\n");
    expect((await sandbox.execute("grep CapEff /proc/self/status")).output).toMatch(/\t0+\n/);
    expect((await sandbox.execute("echo x > /etc-x")).exitCode).not.toBe(0);
  });

  it("ends a command inside the container at the time limit", async () => {
    const sandbox = await open();
    const time = handSetTime();
    const limit = { timeout: 3600, onOutput: () => time.pass(3_600_000) };
    const result = await sandbox.execute("echo begun; setsid sleep 5000 & sleep 5000", limit);
    expect(result).toMatchObject({ exitCode: 124, timedOut: true });
    expect(result.output).toMatch(/^begun\nError: Command timed out after 3600 seconds\.$/);
    expect((await sandbox.execute("ps | grep -c '[s]leep 5000'")).output).toBe("0\n");
  });

  it("ends what is at work when it is closed, also in a container that is left running", async () => {
    const first = await open();
    const again = await openDocker({ ...OPTIONS, sandboxId: first.id });
    const seconds = uniqueSleep();
    const answer = again.execute(`setsid sleep ${seconds} & sleep ${seconds}`);
    await until(() => isAsleep(seconds, 2));
    await again.close();
    await answer;
    expect(isAsleep(seconds)).toBe(false);
    expect((await first.execute("echo fine")).output).toBe("fine\n");
  });

  it("is used again by its id, and then left running", async () => {
    const first = await open();
    await first.write("/a.txt", "kept");
    const again = await openDocker({ ...OPTIONS, sandboxId: first.id });
    expect((await again.read("/a.txt")).content).toBe("kept");
    await again.close();
    expect((await first.read("/a.txt")).content).toBe("kept");
  });

  it("is set up once when it is new, and not when it is used again", async () => {
    const setupScript = "echo ready >> log; pwd >> log";
    const first = await createSandbox({ provider: "docker", ...OPTIONS, setupScript });
    onTestFinished(() => first.close());
    const again = await createSandbox({ provider: "docker", ...OPTIONS, setupScript, sandboxId: first.id });
    await again.close();
    expect((await first.read("/log")).content).toBe("ready\n/workspace\n");
  });

  it("is gone when its setup fails", async () => {
    const label = `case=${randomBytes(8).toString("hex")}`;
    const limits = [...(OPTIONS.limits ?? []), "--label", label];
    await expect(
      createSandbox({ provider: "docker", ...OPTIONS, limits, setupScript: "echo broken; exit 4" }),
    ).rejects.toMatchObject({
      code: "COMMAND_FAILED",
      message: "The setup script of the sandbox failed with exit code 4; its output ends: broken",
    });
    expect(containerIds(`label=${label}`)).toEqual([]);
  });

  it("is gone when it is closed", async () => {
    const sandbox = await open();
    await sandbox.close();
    await expect(openDocker({ ...OPTIONS, sandboxId: sandbox.id })).rejects.toThrow(SandboxError);
  });

  it("says why no container was started", async () => {
    await expect(
      openDocker({ ...OPTIONS, image: "local/none:1", limits: ["--pull", "never"] }),
    ).rejects.toMatchObject({
      code: "NOT_INITIALIZED",
      message: expect.stringContaining("podman did not start a container of 'local/none:1'"),
    });
  });

  // One container for all cases, each in a directory of its own: starting one takes longer than a case.
  let shared: Promise<DockerSandbox> | undefined;
  let cases = 0;
  afterAll(async () => (await shared)?.close());
  runContract(
    {
      name: "DockerSandbox",
      keepsFilesInState: false,
      make: async () => {
        shared ??= openDocker(OPTIONS);
        const container = await shared;
        const workdir = `/workspace/${(cases += 1)}`;
        await container.execute(`mkdir ${workdir}`);
        const backend = await openDocker({ ...OPTIONS, sandboxId: container.id, workdir, user: "1000:1000" });
        return { backend, dispose: () => backend.close() };
      },
    },
    BACKEND_SUITES.filter(({ subject }) => subject === "uploadFiles"),
  );
});

describe("openDocker", () => {
  it("needs an image or a container", async () => {
    await expect(openDocker({})).rejects.toMatchObject({ code: "NOT_INITIALIZED" });
  });

  it("says when the program is missing", async () => {
    await expect(openDocker({ image: "x", program: "no-such-docker" })).rejects.toThrow(
      /no-such-docker did not start/,
    );
  });
});

it("withoutTtyNoise drops what is about the missing terminal and nothing else", () => {
  const noise = [
    "bash: cannot set terminal process group (-1): Inappropriate ioctl for device",
    "bash: no job control in this shell",
    "sh: initialize_job_control: Bad file descriptor",
  ];
  expect(withoutTtyNoise(["a", ...noise, "", "no job control"].join("\n"))).toBe("a\n\nno job control");
});

async function open(): Promise<DockerSandbox> {
  const sandbox = await openDocker(OPTIONS);
  onTestFinished(() => sandbox.close());
  return sandbox;
}
