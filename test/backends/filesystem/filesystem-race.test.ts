import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hasDescriptorPaths } from "../../../src/backends/filesystem/handles.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { filesIn } from "../../support/files-in.ts";

/** Swaps a directory and a file of the root for links to the outside and back, as fast as it can. */
const ATTACKER = `
  const fs = require("node:fs");
  const [root, outside] = process.argv.slice(1);
  const put = (from, to) => {
    for (;;) {
      try { return fs.renameSync(from, to); }
      catch { try { fs.rmSync(to, { recursive: true, force: true }); } catch {} }
    }
  };
  const swap = (name, target) => {
    const here = root + "/" + name, parked = root + "/.parked-" + name;
    put(here, parked);
    try { fs.symlinkSync(target, here); fs.unlinkSync(here); } catch {}
    // One that is opened without care waits for a writer for ever.
    try { fs.renameSync(root + "/.pipe", here); put(here, root + "/.pipe"); } catch {}
    put(parked, here);
  };
  require("node:child_process").execFileSync("mkfifo", [root + "/.pipe"]);
  process.stdout.write("ready\\n");
  for (;;) { swap("dir", outside); swap("file.txt", outside + "/file.txt"); }
`;

let base: string;
let root: string;
let outside: string;
let attacker: ChildProcess;

beforeEach(async () => {
  base = filesIn({
    "root/file.txt": "inside",
    "root/dir/file.txt": "inside",
    "outside/file.txt": "SECRET",
    "outside/dir/file.txt": "SECRET",
    "outside/only-outside.txt": "SECRET",
  });
  root = join(base, "root");
  outside = join(base, "outside");
  attacker = spawn(process.execPath, ["-e", ATTACKER, root, outside], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve) => attacker.stdout?.once("data", resolve));
});

afterEach(async () => {
  const ended = new Promise((resolve) => attacker.once("close", resolve));
  // It runs until it is stopped; one that ended by itself has attacked nothing.
  expect(attacker.exitCode).toBeNull();
  attacker.kill("SIGKILL");
  await ended;
});

const ROUNDS = 150;

// Without descriptor paths a race can be noticed but not excluded.
describe.skipIf(!hasDescriptorPaths())("links swapped in while a method runs", () => {
  it("give nothing away", async () => {
    const backend = new FilesystemBackend({ rootDir: root, virtualMode: true });
    const walker = new FilesystemBackend({ rootDir: root, virtualMode: true, ripgrep: false });
    const seen = new Set<string>();
    for (let round = 0; round < ROUNDS; round += 1) {
      const results = [
        await backend.read("/file.txt"),
        await backend.read("/dir/file.txt"),
        await backend.readRaw("/dir/file.txt"),
        (await backend.downloadFiles(["/dir/file.txt", "/file.txt"])).map(({ content, error }) => ({
          error,
          text: content === null ? "" : new TextDecoder().decode(content),
        })),
        await backend.grep("SECRET", "/dir/file.txt"),
        await backend.glob("*", "/dir"),
        await backend.ls("/dir"),
        await backend.glob("**"),
        await walker.grep("SECRET"),
        ...(round % 10 === 0 ? [await backend.grep("SECRET")] : []),
      ];
      for (const result of results) seen.add(JSON.stringify(result));
    }
    const said = [...seen].join("\n");
    expect(["SECRET", "only-outside", base].filter((text) => said.includes(text))).toEqual([]);
    // The swapping was noticed, so the test has tested something.
    expect(seen.size).toBeGreaterThan(10);
  });

  it("let nothing be changed outside", async () => {
    const backend = new FilesystemBackend({ rootDir: root, virtualMode: true });
    for (let round = 0; round < ROUNDS; round += 1) {
      await backend.write(`/dir/new-${round}.txt`, "x");
      await backend.write("/dir/file.txt", `inside ${round}`, { mode: "overwrite" });
      await backend.edit("/dir/file.txt", "inside", "inside!");
      await backend.uploadFiles([
        ["/dir/file.txt", new TextEncoder().encode("inside")],
        ["/dir/deep/up.txt", new TextEncoder().encode("x")],
      ]);
      await backend.edit("/file.txt", "SECRET", "x");
      await backend.edit("/dir/file.txt", "SECRET", "x");
      await backend.delete(`/dir/only-outside.txt`);
      await backend.delete(`/dir/new-${round}.txt`);
    }
    expect(readdirSync(outside).sort()).toEqual(["dir", "file.txt", "only-outside.txt"]);
    expect(readdirSync(join(outside, "dir"))).toEqual(["file.txt"]);
    expect(readFileSync(join(outside, "file.txt"), "utf8")).toBe("SECRET");
  });
});
