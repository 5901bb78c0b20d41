import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { serverParts } from "../../src/app/server-deps.ts";
import { ConfigSchema } from "../../src/config/schema.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { loadPreviousStateKey, loadStateKey } from "../../src/server/calls/state.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "deepagent-key-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const mode = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

test("many who ask at once get the same key, and nothing else is left behind", async () => {
  const dataDir = join(folder, "new", "data");
  const keys = await Promise.all(Array.from({ length: 20 }, () => loadStateKey(dataDir)));
  expect(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size).toBe(1);
  expect(keys[0]).toHaveLength(32);
  expect(await readdir(dataDir)).toEqual(["state.key"]);
  expect(await loadStateKey(dataDir)).toEqual(keys[0]);
});

test("two data directories have different keys", async () => {
  expect(await loadStateKey(join(folder, "a"))).not.toEqual(await loadStateKey(join(folder, "b")));
});

test.skipIf(process.platform === "win32")(
  "only the owner may read it, also when it was open before",
  async () => {
    await loadStateKey(folder);
    const path = join(folder, "state.key");
    expect(await mode(path)).toBe(0o600);
    await chmod(path, 0o644);
    await loadStateKey(folder);
    expect(await mode(path)).toBe(0o600);
  },
);

test("a damaged key is refused with a remedy and without a host path", async () => {
  await writeFile(join(folder, "state.key"), "short");
  const failure = await loadStateKey(folder).catch((error: Error) => error.message);
  expect(failure).toContain("Delete it");
  expect(failure).not.toContain(folder);
});

test("a key that was put aside is replaced, and still known until it is deleted", async () => {
  const old = await loadStateKey(folder);
  expect(await loadPreviousStateKey(folder)).toBeUndefined();
  await rename(join(folder, "state.key"), join(folder, "state.key.previous"));
  expect(await loadStateKey(folder)).not.toEqual(old);
  expect(await loadPreviousStateKey(folder)).toEqual(old);
});

test("a server takes no key from a folder that a link leads to since it was started", async () => {
  const way = join(folder, "way");
  await Promise.all([mkdir(join(folder, "own")), mkdir(join(folder, "foreign"))]);
  await writeFile(join(folder, "foreign/state.key"), Buffer.alloc(32));
  await symlink("own", way);
  const config = ConfigSchema.parse({ dataDir: way });
  const { deps } = serverParts({ config, env: {}, version: "0", logger: silentLogger });
  const own = await deps.stateKey();
  await rm(way);
  await symlink("foreign", way);
  await expect(deps.stateKey()).rejects.toThrow(
    "A link on the path of the data directory has changed its target",
  );
  await expect(deps.previousStateKey?.()).rejects.toThrow("has changed its target");
  await rm(way);
  await symlink("own", way);
  expect(await deps.stateKey()).toEqual(own);
});
