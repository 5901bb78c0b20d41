import { chmod, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadPreviousStateKey, loadStateKey } from "../../src/server/protocol/state.ts";

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

describe("after 30 days", () => {
  const DAY = 86_400_000;
  const made = Date.now() - 30 * DAY;
  /** A key that was made at `made`. */
  async function oldKey(): Promise<Uint8Array> {
    const key = await loadStateKey(folder, () => made);
    await utimes(join(folder, "state.key"), new Date(made), new Date(made));
    return key;
  }

  test("the key is replaced once, however many ask, and the old one is still known", async () => {
    const old = await oldKey();
    expect(await loadStateKey(folder, () => made + 30 * DAY - 1)).toEqual(old);
    expect(await loadPreviousStateKey(folder, () => made)).toBeUndefined();

    const later = (): number => made + 30 * DAY;
    await Promise.all(Array.from({ length: 20 }, () => loadStateKey(folder, later)));
    const replaced = await loadStateKey(folder);
    expect(replaced).not.toEqual(old);
    expect(await loadPreviousStateKey(folder)).toEqual(old);
    expect((await readdir(folder)).sort()).toEqual(["state.key", "state.key.previous"]);
  });

  test("the old key is forgotten when nothing it signed can be valid any more", async () => {
    const old = await oldKey();
    await loadStateKey(folder, () => made + 30 * DAY);
    const { mtimeMs } = await stat(join(folder, "state.key"));
    expect(await loadPreviousStateKey(folder, () => mtimeMs + DAY)).toEqual(old);
    expect(await loadPreviousStateKey(folder, () => mtimeMs + DAY + DAY / 24)).toBeUndefined();
  });

  test("of the time when the key was made, not of a clock that was ahead then", async () => {
    const ahead = made + 365 * DAY;
    const path = join(folder, "state.key");
    const old = await loadStateKey(folder, () => ahead);
    await utimes(path, new Date(ahead), new Date(ahead));
    expect(await loadStateKey(folder, () => made)).toEqual(old);
    expect(await loadStateKey(folder, () => made + 30 * DAY)).not.toEqual(old);
  });

  test("a rotation that died leaves the old key in use, and the next one does it", async () => {
    const old = await oldKey();
    const lock = join(folder, "state.key.rotating");
    await writeFile(lock, "");
    await utimes(lock, new Date(made), new Date(made));
    const later = (): number => made + 30 * DAY;
    expect(await loadStateKey(folder, later)).toEqual(old);
    expect(await loadStateKey(folder, later)).not.toEqual(old);
  });
});
