import { chmodSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inProcessLock } from "../../../src/backends/filesystem/process-lock.ts";

const configured = process.env["TMPDIR"];
let base: string;

beforeEach(() => {
  base = mkdtempSync(join(configured ?? tmpdir(), "deepagent-locks-"));
  process.env["TMPDIR"] = base;
});

afterEach(() => {
  if (configured === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = configured;
  rmSync(base, { recursive: true });
});

const locks = (): string[] =>
  readdirSync(base, { recursive: true, encoding: "utf8" }).filter((path) => path.includes("/"));

describe("inProcessLock", () => {
  it("holds a lock during the step and none after it, however it ends", async () => {
    expect(await inProcessLock("a", locks)).toHaveLength(1);
    expect(locks()).toEqual([]);
    const failing = inProcessLock("a", () => {
      throw new Error("step failed");
    });
    await expect(failing).rejects.toThrow("step failed");
    expect(locks()).toEqual([]);
  });

  it("waits for the holder, and not for holders of other keys", async () => {
    const [held = ""] = await inProcessLock("a", locks);
    writeFileSync(join(base, held), "");
    const order: string[] = [];
    const waiting = inProcessLock("a", () => order.push("a"));
    await inProcessLock("b", () => order.push("b"));
    expect(order).toEqual(["b"]);
    rmSync(join(base, held));
    await waiting;
    expect(order).toEqual(["b", "a"]);
  });

  it("takes over from a process that was killed", async () => {
    const [held = ""] = await inProcessLock("a", locks);
    writeFileSync(join(base, held), "");
    const longAgo = new Date(Date.now() - 60_000);
    utimesSync(join(base, held), longAgo, longAgo);
    expect(await inProcessLock("a", () => "done")).toBe("done");
    expect(locks()).toEqual([]);
  });

  it("does without where no private directory can be had", async () => {
    await inProcessLock("a", () => {});
    const [directory = ""] = readdirSync(base);
    chmodSync(join(base, directory), 0o777);
    expect(await inProcessLock("a", locks)).toEqual([]);
  });
});
