import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A file system of its own. */
export interface Disk {
  readonly path: string;
  /** Leaves no byte free; `leave` are given back at once. */
  fill(leave?: number): void;
  /** Takes the ballast away. */
  free(): void;
  /** May be written to or not, by everybody. */
  remount(mode: "ro" | "rw"): void;
}

const run = (command: string, ...args: string[]): void => {
  execFileSync(command, args, { stdio: "pipe" });
};

const mount = (path: string, options: string): void =>
  run("mount", "-t", "tmpfs", "-o", `mode=0777,${options}`, "tmpfs", path);

/** In memory, with so many options as `mount -o` takes; gone after the test. */
export function mountDisk(options: string): Disk {
  const path = mkdtempSync(join(tmpdir(), "deepagent-disk-"));
  mount(path, options);
  onTestFinished(() => {
    // Lazily: a server that ends late may still have files open.
    run("umount", "--lazy", path);
    rmSync(path, { recursive: true, force: true });
  });
  const ballast = join(path, "ballast");
  return {
    path,
    fill: (leave = 0) => {
      const file = openSync(ballast, "a");
      for (let size = 1_048_576; size >= 1;) {
        try {
          if (writeSync(file, Buffer.alloc(size)) < size) size = Math.floor(size / 2);
        } catch {
          size = Math.floor(size / 2);
        }
      }
      closeSync(file);
      if (leave > 0) truncateSync(ballast, Math.max(statSync(ballast).size - leave, 0));
    },
    free: () => rmSync(ballast, { force: true }),
    remount: (mode) => run("mount", "-o", `remount,${mode}`, path),
  };
}
