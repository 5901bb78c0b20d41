import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { isGone, processMark, processStat } from "../../src/core/process-mark.ts";

const supported = existsSync("/proc/self/ns/pid");

it.runIf(supported)("tells a process that has ended from one that lives", async () => {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  const own = `srv_a${processMark()}`;
  const childs = own.replace(/\d+\.\d+$/, `${child.pid}.${processStat(child.pid ?? 0).start}`);
  const earlier = own.replace(/\d+\.\d+$/, String(child.pid));
  expect([own, childs, earlier].map(isGone)).toEqual([false, false, false]);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect([own, childs, earlier].map(isGone)).toEqual([false, true, true]);
});

it.runIf(supported)("does not take a process for an earlier one that had its number", () => {
  expect(isGone(`srv_a${processMark().replace(/\d+$/, "1")}`)).toBe(true);
});

it.runIf(supported)("reads a process by its fields, whatever name it gives itself", async () => {
  const folder = mkdtempSync(join(tmpdir(), "process-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = join(folder, "a) Z 1 1 b");
  symlinkSync(process.execPath, program);
  const child = spawn(program, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
  await once(child, "spawn");
  expect(processStat(child.pid ?? 0)).toMatchObject({ parent: process.pid });
  expect(processStat(child.pid ?? 0).state).not.toBe("Z");
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(processStat(child.pid ?? 0)).toEqual({ state: "", parent: 0, group: 0, start: "" });
});

it("says nothing about processes of other machines, or without a mark", () => {
  expect(isGone("srv_a")).toBe(false);
  expect(isGone("srv_a.0123456789abcdef.999999999")).toBe(false);
});
