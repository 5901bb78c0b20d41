import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { isGone, processMark, processStart } from "../../src/core/process-mark.ts";

const supported = existsSync("/proc/self/ns/pid");

it.runIf(supported)("tells a process that has ended from one that lives", async () => {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  const own = `srv_a${processMark()}`;
  const childs = own.replace(/\d+\.\d+$/, `${child.pid}.${processStart(child.pid ?? 0)}`);
  const earlier = own.replace(/\d+\.\d+$/, String(child.pid));
  expect([own, childs, earlier].map(isGone)).toEqual([false, false, false]);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect([own, childs, earlier].map(isGone)).toEqual([false, true, true]);
});

it.runIf(supported)("does not take a process for an earlier one that had its number", () => {
  expect(isGone(`srv_a${processMark().replace(/\d+$/, "1")}`)).toBe(true);
});

it("says nothing about processes of other machines, or without a mark", () => {
  expect(isGone("srv_a")).toBe(false);
  expect(isGone("srv_a.0123456789abcdef.999999999")).toBe(false);
});
