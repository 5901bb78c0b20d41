import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openSharedStorage } from "../../src/app/open-storage.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { freePort } from "../support/free-port.ts";

it("with Postgres, too, the data directory is there before anything else is written into it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-data-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const dataDir = join(folder, "new", "data");
  const url = `postgres://nobody@127.0.0.1:${await freePort()}/none`;
  const storage = { storage: url, storageSchema: "public", storageConnections: 1, storageRole: undefined };
  const config = { dataDir, storageS3: undefined, ...storage };
  await expect(openSharedStorage(url, { config, env: {}, logger: silentLogger })).rejects.toThrow();
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
});
