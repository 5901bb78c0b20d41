import { closeSync, constants, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type DirectoryHandle, openRoot, DirectoryTrail } from "../../../src/backends/filesystem/handles.ts";
import { filesIn } from "../../support/files-in.ts";

let root: string;

beforeEach(() => {
  const paths = ["a/b/1", "a/b/2", "a/1", "a/c/1", "ab/1", "1"];
  root = filesIn(Object.fromEntries(paths.map((path) => [path, path])));
});

/** A directory that notes which directories below it are opened and closed. */
function noting(directory: DirectoryHandle, path: string, events: string[]): DirectoryHandle {
  return {
    at: (name) => directory.at(name),
    entries: () => directory.entries(),
    openDirectory: (name) => {
      const opened = directory.openDirectory(name);
      events.push(`open ${path}${name}`);
      return noting(opened, `${path}${name}/`, events);
    },
    openFile: (name, flags, mode) => directory.openFile(name, flags, mode),
    identity: () => directory.identity(),
    flush: () => directory.flush(),
    close: () => {
      events.push(`close ${path.slice(0, -1)}`);
      directory.close();
    },
  };
}

describe("DirectoryTrail", () => {
  it.each([true, false])("opens each directory once for files in a row (descriptors: %s)", (byDescriptor) => {
    const handle = openRoot(root, byDescriptor && process.platform === "linux");
    const events: string[] = [];
    const trail = new DirectoryTrail(noting(handle, "", events));
    const read = (path: string): string => {
      const descriptor = trail.openFile(path, constants.O_RDONLY);
      try {
        return readFileSync(descriptor, "utf8");
      } finally {
        closeSync(descriptor);
      }
    };
    const paths = ["a/b/1", "a/b/2", "a/1", "a/c/1", "ab/1", "1", "a/1"];
    expect(paths.map(read)).toEqual(paths);
    trail.close();
    handle.close();
    const opened = events.filter((event) => event.startsWith("open")).map((event) => event.slice(5));
    expect(opened).toEqual(["a", "a/b", "a/c", "ab", "a"]);
    const closed = events.filter((event) => event.startsWith("close")).map((event) => event.slice(6));
    expect(closed.sort()).toEqual(opened.sort());
  });

  it("follows no link and goes on after a failure", () => {
    symlinkSync("a", join(root, "link"));
    symlinkSync("1", join(root, "a", "link"));
    const handle = openRoot(root, process.platform === "linux");
    const trail = new DirectoryTrail(handle);
    const open = (path: string): number => trail.openFile(path, constants.O_RDONLY);
    for (const path of ["link/1", "a/link", "a/missing/1", "a/b/1/1", "a/b/missing"]) {
      expect(() => open(path), path).toThrow();
    }
    closeSync(open("a/b/1"));
    trail.close();
    handle.close();
  });
});
