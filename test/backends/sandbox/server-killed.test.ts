import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import type { CreateSandboxOptions } from "../../../src/backends/sandbox/create-sandbox.ts";
import { containerIds, CONTAINERS } from "./containers.ts";
import { commandLines, folder, isAsleep, isBeingMade, manyMounts, uniqueSleep, until } from "./support.ts";

/** Kills a process when it has `reached` a point of its command in a sandbox; gives the id of that. */
async function killServer(
  options: CreateSandboxOptions,
  seconds: string,
  reached = (said: string) => said.includes("begun") && isAsleep(seconds),
): Promise<string> {
  const program = join(folder(), "program.mjs");
  await build({
    entryPoints: [fileURLToPath(new URL("./shell-process.ts", import.meta.url))],
    outfile: program,
    bundle: true,
    format: "esm",
    platform: "node",
    // The CommonJS form of jsonc-parser cannot be bundled.
    mainFields: ["module", "main"],
    target: "node20",
    logLevel: "error",
    external: ["@vscode/ripgrep"],
    banner: {
      js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
    },
  });
  const command = `setsid sleep ${seconds} & echo begun; sleep ${seconds}`;
  const server = spawn(process.execPath, [program, JSON.stringify(options), command]);
  let said = "";
  server.stdout.on("data", (chunk) => (said += String(chunk)));
  await until(() => reached(said));
  server.kill("SIGKILL");
  return said.split("\n", 1)[0] ?? "";
}

describe("a server that is killed", () => {
  it("leaves nothing of a local shell", async () => {
    const seconds = uniqueSleep();
    await killServer({ provider: "local", rootDir: folder(), virtualMode: true }, seconds);
    await until(() => !isAsleep(seconds));
  });

  it("leaves nothing of Bubblewrap", { tags: "bwrap" }, async () => {
    const seconds = uniqueSleep();
    await killServer({ provider: "bubblewrap", rootDir: folder() }, seconds);
    await until(() => !isAsleep(seconds));
  });

  it("leaves nothing of a sandbox that was being made", { tags: "bwrap" }, async () => {
    const seconds = uniqueSleep();
    const rootDir = folder();
    const options = { provider: "bubblewrap", rootDir, readOnly: manyMounts(200) } as const;
    await killServer(options, seconds, (said) => said !== "" && isBeingMade(seconds));
    await until(() => !commandLines().some((line) => line.includes(seconds)));
  });

  it("leaves no container", { tags: "podman" }, async () => {
    const seconds = uniqueSleep();
    const id = await killServer({ provider: "docker", ...CONTAINERS }, seconds);
    expect(id).toMatch(/^deepagent-/);
    await until(() => !isAsleep(seconds) && !containerIds().includes(id));
  });
});
