import { spawnSync } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { bundled } from "../support/bundled.ts";

/** Node makes those below 16 of what it inherits close by themselves. */
const INHERITED = [20, 40];

/** What a shell that this program starts has open, where the launcher left two folders open. */
async function openInChild(script: string): Promise<string[]> {
  const module = JSON.stringify(await bundled("src/core/child-process.ts"));
  const folder = openSync(tmpdir(), "r");
  onTestFinished(() => closeSync(folder));
  const stdio: (number | "pipe" | "ignore")[] = ["ignore", "pipe", "pipe"];
  for (let number = 3; number <= Math.max(...INHERITED); number += 1) stdio[number] = "ignore";
  for (const number of INHERITED) stdio[number] = folder;
  const program = `const processes = await import(${module}); ${script}`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { stdio });
  expect(String(stderr)).toBe("");
  return String(stdout).trim().split("\n");
}

const LIST = JSON.stringify("for each in /proc/$$/fd/*; do readlink $each || true; done");

it.runIf(process.platform === "linux")("passes nothing on that its launcher left open", async () => {
  expect(
    await openInChild(
      `const options = { stdio: ["ignore", "inherit", "ignore"] };
       processes.startChild("/bin/sh", ["-c", ${LIST}], options);`,
    ),
  ).not.toContain(tmpdir());
  expect(
    await openInChild(
      `console.log(await processes.runProgram("/bin/sh", ["-c", ${LIST}], { timeout: 60_000 }));`,
    ),
  ).not.toContain(tmpdir());
});

it.runIf(process.platform === "linux")("closes it for libraries that start children themselves", async () => {
  const list = `(await import("node:child_process")).execFileSync("/bin/sh", ["-c", ${LIST}], { encoding: "utf8" })`;
  expect(await openInChild(`console.log(${list});`)).toContain(tmpdir());
  expect(await openInChild(`processes.closeInherited(); console.log(${list});`)).not.toContain(tmpdir());
});

it("is the only way in which the sources start programs", () => {
  const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const starts = sources.filter((name) => {
    const code = readFileSync(join("src", name), "utf8").replace(/^import type .*$/gm, "");
    return /"(?:node:)?(?:child_process|cluster)"|"cross-spawn"/.test(code);
  });
  expect(starts).toEqual([join("core", "child-process.ts")]);
});

it("keeps no process for the time limit of a program that is not there", async () => {
  const module = JSON.stringify(await bundled("src/core/child-process.ts"));
  const program = `const { runProgram } = await import(${module});
await runProgram("/no/such/program", [], { timeout: 300_000 }).catch(({ code }) => console.log(code));`;
  const options = { timeout: 60_000, encoding: "utf8" } as const;
  const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", program], options);
  expect({ stdout, status }).toEqual({ stdout: "ENOENT\n", status: 0 });
});
