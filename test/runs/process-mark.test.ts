import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { isGone, processMark } from "../../src/runs/worker.ts";

const supported = existsSync("/proc/self/ns/pid");

it.runIf(supported)("tells a process that has ended from one that lives", async () => {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  const own = `srv_a${processMark()}`;
  const childs = own.replace(/\d+$/, String(child.pid));
  expect(isGone(own)).toBe(false);
  expect(isGone(childs)).toBe(false);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(isGone(childs)).toBe(true);
});

it("says nothing about processes of other machines, or without a mark", () => {
  expect(isGone("srv_a")).toBe(false);
  expect(isGone("srv_a.0123456789abcdef.999999999")).toBe(false);
});
