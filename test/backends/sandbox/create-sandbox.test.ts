import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createSandbox, type OpenSandbox } from "../../../src/backends/sandbox/create-sandbox.ts";
import { folder, isAsleep, uniqueSleep, until } from "./support.ts";

const SHELLS = ["local", "bubblewrap"] as const;

async function closing(opening: Promise<OpenSandbox>): Promise<OpenSandbox> {
  const sandbox = await opening;
  onTestFinished(() => sandbox.close());
  return sandbox;
}

describe.each(SHELLS)("a sandbox of the provider %s", (provider) => {
  const needs = provider === "bubblewrap" ? { tags: "bwrap" } : {};
  const where = (): { rootDir: string } => ({
    rootDir: folder(),
    ...(provider === "local" ? { virtualMode: true } : {}),
  });

  it("is set up once, before anything else", needs, async () => {
    const options = { ...where(), setupScript: "echo ready >> log\npwd > where" };
    const sandbox = await closing(createSandbox({ provider, ...options }));
    expect((await sandbox.read("/log")).content).toBe("ready\n");
    expect((await sandbox.execute("pwd")).output).toBe((await sandbox.read("/where")).content);
    expect((await sandbox.read("/log")).content).toBe("ready\n");
  });

  it("takes its setup from a file", needs, async () => {
    const file = join(folder(), "setup.sh");
    writeFileSync(file, "echo from a file > made\n");
    const options = { ...where(), setupScriptPath: file };
    const sandbox = await closing(createSandbox({ provider, ...options }));
    expect((await sandbox.read("/made")).content).toBe("from a file\n");
  });

  it("is not given when its setup fails, and leaves nothing running", needs, async () => {
    const seconds = uniqueSleep();
    const setupScript = `sleep ${seconds} & seq 10000; echo 'no compiler' >&2; exit 5`;
    const opening = createSandbox({ provider, rootDir: folder(), setupScript });
    const error: unknown = await opening.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "COMMAND_FAILED",
      message: expect.stringMatching(/^The setup script of the sandbox failed with exit code 5; its output/),
    });
    const { message } = error as Error; // as matched above
    expect(message).toMatch(/\n10000\n\[stderr\] no compiler$/);
    expect(message.length).toBeLessThan(2200);
    await until(() => !isAsleep(seconds));
  });

  it("is not given when its setup takes too long", needs, async () => {
    const options = { rootDir: folder(), setupScript: "sleep 5000", setupTimeout: 0.3 };
    await expect(createSandbox({ provider, ...options })).rejects.toMatchObject({ code: "COMMAND_TIMEOUT" });
  });
});

describe("createSandbox", () => {
  it("ends what runs at the end of its scope", async () => {
    const seconds = uniqueSleep();
    {
      await using sandbox = await createSandbox({ provider: "local", rootDir: folder() });
      await sandbox.execute(`sleep ${seconds} & echo begun`);
      await until(() => isAsleep(seconds));
    }
    await until(() => !isAsleep(seconds));
  });

  it("takes one setup, which must be there", async () => {
    const options = { provider: "local", rootDir: folder() } as const;
    const both = { setupScript: "true", setupScriptPath: "/x" };
    await expect(createSandbox({ ...options, ...both })).rejects.toMatchObject({ code: "SANDBOX_SETUP" });
    const missing = { setupScriptPath: "/nonexistent/setup.sh" };
    await expect(createSandbox({ ...options, ...missing })).rejects.toMatchObject({ code: "SANDBOX_SETUP" });
  });

  it("says why there is no Bubblewrap or container", async () => {
    const bubblewrap = createSandbox({ provider: "bubblewrap", rootDir: folder(), bwrap: "no-such-bwrap" });
    await expect(bubblewrap).rejects.toMatchObject({
      code: "NOT_INITIALIZED",
      message: expect.stringContaining("install"),
    });
    const docker = createSandbox({ provider: "docker", image: "x", program: "no-such-docker" });
    await expect(docker).rejects.toMatchObject({ code: "NOT_INITIALIZED" });
  });
});
