import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { createSandbox, type OpenSandbox } from "../../../src/backends/sandbox/create-sandbox.ts";
import type { LoadPackage } from "../../../src/core/optional-package.ts";
import type { RemoteOptions } from "../../../src/backends/sandbox/remote-sandbox.ts";
import { BACKEND_SUITES } from "../../../testing/backend-contract.ts";
import { runContract } from "../contract/contract.ts";
import { daytonaPackage, modalPackage, Provider, runloopPackage } from "./provider-stand-ins.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { folder, isAsleep, uniqueSleep, until } from "./support.ts";

const HOUR = 3_600_000;

/** The services themselves are not reached: their packages are stood in for, with shells of this machine. */
const PROVIDERS = {
  modal: {
    package: "modal",
    stand: modalPackage,
    needs: "npm install modal@0.11.1 and set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET",
    keys: { MODAL_TOKEN_ID: "id", MODAL_TOKEN_SECRET: "secret" },
    workdir: "/workspace",
  },
  runloop: {
    package: "@runloop/api-client",
    stand: runloopPackage,
    needs: "npm install @runloop/api-client@1.32.0 and set RUNLOOP_API_KEY",
    keys: { RUNLOOP_API_KEY: "key" },
    workdir: "/home/user",
  },
  daytona: {
    package: "@daytonaio/sdk",
    stand: daytonaPackage,
    needs: "npm install @daytonaio/sdk@0.218.0 and set DAYTONA_API_KEY",
    keys: { DAYTONA_API_KEY: "key" },
    workdir: "/home/daytona",
  },
} as const;
type Name = keyof typeof PROVIDERS;
const NAMES = Object.keys(PROVIDERS) as Name[]; // the keys of the table

const setKeys = (name: Name): void => {
  for (const [key, value] of Object.entries(PROVIDERS[name].keys)) vi.stubEnv(key, value);
};
beforeEach(() => {
  vi.stubEnv("MODAL_CONFIG_PATH", "/nonexistent");
  return () => void vi.unstubAllEnvs();
});

interface Opened {
  sandbox: OpenSandbox;
  service: Provider;
  root: string;
  again(id: string): Promise<OpenSandbox>;
}

async function open(name: Name, options: RemoteOptions & { setupScript?: string } = {}): Promise<Opened> {
  setKeys(name);
  const service = new Provider();
  const { stand, package: needed } = PROVIDERS[name];
  const load: LoadPackage = async (asked) => {
    expect(asked).toBe(needed);
    return stand(service);
  };
  const root = join(folder(), "work");
  const sandbox = await createSandbox({ provider: name, workdir: root, ...options }, load);
  onTestFinished(() => sandbox.close());
  const again = (sandboxId: string): Promise<OpenSandbox> =>
    createSandbox({ provider: name, workdir: root, ...options, sandboxId }, load);
  return { sandbox, service, root, again };
}

describe.each(NAMES)("a sandbox of %s", (name) => {
  it("runs commands in its directory, beside the file tools", async () => {
    const { sandbox, root } = await open(name, { env: { OWN: "own" } });
    await sandbox.write("/src/a.txt", "text\n");
    const command = "cat a.txt; pwd; echo $OWN $EXTRA; cat; exit 3";
    expect(await sandbox.execute(command, { cwd: "/src", env: { EXTRA: 'it\'s "so"\n$x' } })).toEqual({
      output: `text\n${root}/src\nown it's "so" $x\n`,
      exitCode: 3,
      truncated: false,
    });
    expect((await sandbox.read("/src/a.txt")).content).toBe("text\n");
    expect(sandbox.capabilities).toMatchObject({ isolation: "remote", executeOptions: true });
    expect(sandbox.id).toBe("box-0");
  });

  it("tells both outputs apart, streams and caps them", async () => {
    const { sandbox, root } = await open(name, { maxOutputBytes: 1000 });
    // Both are read as they come: the second is written when the first has arrived.
    const command = "echo out; until [ -e arrived ]; do sleep 0.01; done; echo err >&2";
    const onOutput = (): void => writeFileSync(join(root, "arrived"), "");
    expect((await sandbox.execute(command, { onOutput })).output).toBe("out\n[stderr] err\n");
    const seen: string[] = [];
    const result = await sandbox.execute("yes | head -c 3000000", { onOutput: (chunk) => seen.push(chunk) });
    expect(result).toMatchObject({ exitCode: 0, truncated: true });
    expect(result.output).toMatch(/\n\.\.\. Output truncated at 1000 bytes\.$/);
    expect(seen.join("")).toHaveLength(1000);
  });

  it("ends everything a command started at the time limit, and keeps what was written", async () => {
    const { sandbox } = await open(name);
    const seconds = uniqueSleep();
    const command = `echo begun; setsid sleep ${seconds} & sleep ${seconds}`;
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

  it("ends a command whose call was aborted, and what runs when it is closed", async () => {
    const { sandbox } = await open(name);
    const [first, second] = [uniqueSleep(), uniqueSleep()];
    const controller = new AbortController();
    const result = await sandbox.execute(`echo begun; sleep ${first}`, {
      signal: controller.signal,
      onOutput: () => controller.abort(),
    });
    expect(result).toMatchObject({ output: "begun\n", exitCode: null });
    await until(() => !isAsleep(first));
    const running = sandbox.execute(`sleep ${second}`);
    await until(() => isAsleep(second));
    await sandbox.close();
    expect((await running).exitCode).toBeNull();
    await until(() => !isAsleep(second));
  });

  it("moves large files whole, by the provider's own way", async () => {
    const { sandbox, service, root } = await open(name);
    const bytes = new Uint8Array(randomBytes(700_000));
    expect(await sandbox.uploadFiles?.([["/deep/er/a.bin", bytes]])).toEqual([
      { path: "/deep/er/a.bin", error: null },
    ]);
    expect(readFileSync(join(root, "deep/er/a.bin")).equals(bytes)).toBe(true);
    const [answer] = (await sandbox.downloadFiles?.(["/deep/er/a.bin"])) ?? [];
    expect(Buffer.from(answer?.content ?? []).equals(bytes)).toBe(true);
    expect(service.asked.filter((asked) => asked.endsWith("load"))).toEqual(["upload", "download"]);
    expect((await sandbox.ls("/deep/er")).files?.map(({ path }) => path)).toEqual(["/deep/er/a.bin"]);
  });

  it("is used again by its id and then left running; a new one is gone when it is closed", async () => {
    const { sandbox, service, root, again } = await open(name, { setupScript: "echo once >> setup" });
    const other = await again(sandbox.id);
    expect((await other.read("/setup")).content).toBe("once\n");
    await other.close();
    expect(service.running).toEqual(new Set([sandbox.id]));
    await sandbox.close();
    expect(service.running.size).toBe(0);
    expect(readFileSync(join(root, "setup"), "utf8")).toBe("once\n");
    await expect(again(sandbox.id)).rejects.toMatchObject({ code: "NOT_INITIALIZED" });
  });

  it("passes parameters on, and ends a sandbox whose setup fails", async () => {
    setKeys(name);
    const service = new Provider();
    const load = async (): Promise<object> => PROVIDERS[name].stand(service);
    const options = { provider: name, workdir: folder(), parameters: { name: "mine" } };
    const failed = createSandbox({ ...options, setupScript: "echo no such tool; exit 7" }, load);
    await expect(failed).rejects.toMatchObject({
      code: "COMMAND_FAILED",
      message: "The setup script of the sandbox failed with exit code 7; its output ends: no such tool",
    });
    expect(service.asked[0]).toContain('"name":"mine"');
    expect(service.running.size).toBe(0);
  });

  it("says exactly what to install and which key to set, whichever is missing", async () => {
    const { needs, stand } = PROVIDERS[name];
    const expected = { code: "NOT_INITIALIZED", message: expect.stringMatching(needs) };
    await expect(
      createSandbox({ provider: name }, () => Promise.resolve(stand(new Provider()))),
    ).rejects.toMatchObject(expected);
    setKeys(name);
    await expect(createSandbox({ provider: name })).rejects.toMatchObject(expected);
    const another = (): Promise<unknown> => Promise.resolve({ default: () => {} });
    await expect(createSandbox({ provider: name }, another)).rejects.toMatchObject(expected);
  });

  it("has the directory the provider is known for", async () => {
    setKeys(name);
    const service = new Provider();
    const id = service.add({});
    const load = async (): Promise<object> => PROVIDERS[name].stand(service);
    const sandbox = await createSandbox({ provider: name, sandboxId: id }, load);
    const { output } = await sandbox.execute("pwd");
    await sandbox.close();
    const { workdir } = PROVIDERS[name];
    expect(output === `${workdir}\n` || output.includes(workdir), output).toBe(true);
  });
});

for (const name of NAMES) {
  runContract(
    {
      name: `a sandbox of ${name}`,
      keepsFilesInState: false,
      make: async () => {
        setKeys(name);
        const load = async (): Promise<object> => PROVIDERS[name].stand(new Provider());
        const backend = await createSandbox({ provider: name, workdir: folder() }, load);
        return { backend, dispose: () => backend.close() };
      },
    },
    BACKEND_SUITES.filter(({ subject }) => ["ls", "uploadFiles", "downloadFiles"].includes(subject)),
  );
}
