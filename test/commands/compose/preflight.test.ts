import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { openRuns } from "../../../src/app/open-runs.ts";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { mine, cleanUpWith, databaseFile } from "../../runs/support.ts";

/** A server of the rule-based model with a workspace and a prompt file. */
async function open(): Promise<{ service: RunService; workspace: string; promptFile: string }> {
  const dataDir = dirname(databaseFile());
  const [workspace, promptFile] = [join(dataDir, "workspace"), join(dataDir, "提示.md")];
  mkdirSync(workspace);
  const config = ConfigSchema.parse({ dataDir, workspace, model: "offline", systemPromptFile: promptFile });
  const service = await openRuns({ config, env: {}, logger: silentLogger });
  cleanUpWith(() => service.close());
  return { service, workspace, promptFile };
}

test("a server finds a missing prompt file before a run starts, and a later one without a restart", async () => {
  const { service, promptFile } = await open();
  const started = await mine(service).control.start({ task: "look around" });
  expect(started).toMatchObject({ ok: false, code: "configuration_invalid" });
  const { refusal } = await mine(service).agents.readiness();
  expect(refusal?.message).toMatch(/^No run was started\. The file of systemPromptFile cannot be read/);
  expect(refusal?.message).not.toContain(dirname(promptFile));
  expect(await mine(service).read.list({ limit: 1 })).toEqual([]);
  writeFileSync(promptFile, "Write Danish.");
  expect(await mine(service).control.start({ task: "look around" })).toMatchObject({
    ok: true,
    how: "started",
  });
});

test("a workspace that is gone is named before the prompt file", async () => {
  const { service, workspace } = await open();
  renameSync(workspace, `${workspace}-away`);
  expect(await mine(service).control.start({ task: "x" })).toMatchObject({
    ok: false,
    code: "workspace_missing",
  });
});
