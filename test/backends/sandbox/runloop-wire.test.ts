import { randomBytes } from "node:crypto";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createSandbox, type OpenSandbox } from "../../../src/backends/sandbox/create-sandbox.ts";
import { RunloopService } from "./runloop-service.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { folder, isAsleep, uniqueSleep, until } from "./support.ts";

/** The entry of `@runloop/api-client`, which is no dependency: install it elsewhere and name its `sdk.mjs`. */
const packageFile = process.env["RUNLOOP_CLIENT_FILE"];

describe("Runloop's own client over HTTP", { tags: "runloop" }, () => {
  const start = async (): Promise<RunloopService> => {
    const key = randomBytes(8).toString("hex");
    const service = new RunloopService(key);
    vi.stubEnv("RUNLOOP_API_KEY", key);
    vi.stubEnv("RUNLOOP_BASE_URL", await service.listen());
    onTestFinished(() => {
      service.close();
      vi.unstubAllEnvs();
    });
    return service;
  };

  const load = (): Promise<unknown> => import(pathToFileURL(packageFile ?? "").href);
  const open = async (options: object = {}): Promise<OpenSandbox> => {
    const sandbox = await createSandbox({ provider: "runloop", workdir: folder(), ...options }, load);
    onTestFinished(() => sandbox.close());
    return sandbox;
  };

  it("runs commands and moves files", async () => {
    const service = await start();
    const sandbox = await open({ setupScript: "echo ready > a.txt" });
    expect(await sandbox.execute("cat a.txt; echo no >&2; exit 3")).toEqual({
      output: "ready\n[stderr] no\n",
      exitCode: 3,
      truncated: false,
    });
    const bytes = new Uint8Array(randomBytes(700_000));
    await sandbox.uploadFiles?.([["/b.bin", bytes]]);
    const [answer] = (await sandbox.downloadFiles?.(["/b.bin"])) ?? [];
    expect(Buffer.from(answer?.content ?? []).equals(bytes)).toBe(true);
    expect(service.requests).toContain(`POST /v1/devboxes/${sandbox.id}/upload_file`);
    expect(service.requests).toContain(`POST /v1/devboxes/${sandbox.id}/download_file`);
    await sandbox.close();
    expect(service.running.size).toBe(0);
  });

  it("waits for long commands, and ends them at the time limit", async () => {
    await start();
    const sandbox = await open();
    expect(await sandbox.execute("sleep 0.5; echo done")).toMatchObject({ output: "done\n", exitCode: 0 });
    const seconds = uniqueSleep();
    const time = handSetTime();
    const limit = { timeout: 3600, onOutput: () => time.pass(3_600_000) };
    const result = await sandbox.execute(`echo begun; sleep ${seconds}`, limit);
    expect(result).toMatchObject({ exitCode: 124, timedOut: true });
    expect(result.output).toMatch(/^begun\nError: /);
    await until(() => !isAsleep(seconds));
  });

  it("is found again, or not", async () => {
    const service = await start();
    const sandbox = await open();
    await (await open({ sandboxId: sandbox.id })).close();
    expect(service.running.has(sandbox.id)).toBe(true);
    await expect(open({ sandboxId: "none" })).rejects.toMatchObject({ code: "NOT_INITIALIZED" });
  });
});
