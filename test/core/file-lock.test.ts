import { existsSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { breakLock, isOlder, takeLock } from "../../src/core/file-lock.ts";
import { filesIn } from "../support/files-in.ts";

let path: string;
beforeEach(() => {
  path = join(filesIn(), "lock");
});

it("belongs to whoever made it, until it is released", () => {
  const lock = takeLock(path, "first");
  expect(readFileSync(path, "utf8")).toBe("first");
  expect(takeLock(path)).toBeUndefined();
  lock?.release();
  expect(takeLock(path)?.isHeld()).toBe(true);
});

it("leaves the lock of another process in place, although it has the same name", () => {
  const first = takeLock(path);
  breakLock(path, () => true);
  const second = takeLock(path);
  expect(first?.isHeld()).toBe(false);
  first?.release();
  expect(second?.isHeld()).toBe(true);
});

it("is put back if it turns out to be another one while it is broken", () => {
  const lock = takeLock(path, "second");
  breakLock(path, (file) => readFileSync(file, "utf8") === "first");
  expect(lock?.isHeld()).toBe(true);
  breakLock(path, (file) => readFileSync(file, "utf8") === "second");
  expect(lock?.isHeld()).toBe(false);
  expect(existsSync(path)).toBe(false);
});

it("is old with a time far in the past or in the future, because clocks are set", () => {
  writeFileSync(path, "");
  const ages = [-3600, 0, 3600].map((seconds) => {
    const time = Date.now() / 1000 + seconds;
    utimesSync(path, time, time);
    return isOlder(path, 60_000);
  });
  expect(ages).toEqual([true, false, true]);
});
