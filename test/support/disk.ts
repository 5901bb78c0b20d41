import { fstatSync, statSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/**
 * Has `flushed` called whenever the disk has taken all of one of `files`, until the test is over; what it throws
 * is what the disk fails with. Files are known by what they are, not by their names.
 */
export async function watchFlushes<Name extends string>(
  files: Readonly<Record<Name, string>>,
  flushed: (name: Name) => void,
): Promise<void> {
  const own = await open(fileURLToPath(import.meta.url));
  await own.close();
  const prototype = Object.getPrototypeOf(own) as FileHandle; // there is one class of them, which Node keeps to itself
  const datasync = prototype.datasync;
  prototype.datasync = async function (this: FileHandle): Promise<void> {
    await datasync.call(this);
    const { ino } = fstatSync(this.fd);
    for (const [name, file] of Object.entries(files) as [Name, string][]) {
      if (statSync(file, { throwIfNoEntry: false })?.ino === ino) flushed(name);
    }
  };
  onTestFinished(() => {
    prototype.datasync = datasync;
  });
}
