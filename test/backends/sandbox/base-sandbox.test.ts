// @module-tag long
// Each operation is a shell that is started.
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { ExecuteOptions, ExecuteResponse } from "../../../src/backends/executor.ts";
import { BaseSandbox } from "../../../src/backends/sandbox/base-sandbox.ts";
import { LocalShellBackend } from "../../../src/backends/sandbox/shell-backend.ts";
import { programPath } from "../../support/program-path.ts";
import { runContract, type Subject } from "../contract/contract.ts";
import { BACKEND_SUITES } from "../../../testing/backend-contract.ts";

/** A sandbox that is a shell of this machine; `busybox` is a folder with the programs of BusyBox and no others. */
class ShellSandbox extends BaseSandbox {
  readonly id: string;
  readonly shell: LocalShellBackend;
  readonly #busybox: string | undefined;
  /** Commands of file operations so far. */
  commands = 0;

  constructor(
    rootDir: string,
    { busybox, ...options }: { busybox?: string | undefined; readChunk?: number } = {},
  ) {
    super({ root: rootDir, maxFileSizeMb: 1, ...options }, "none");
    this.#busybox = busybox;
    this.shell = new LocalShellBackend({ rootDir, maxOutputBytes: 1_000_000 });
    this.id = this.shell.id;
  }

  execute(command: string, options: ExecuteOptions = {}): Promise<ExecuteResponse> {
    this.commands += 1;
    if (this.#busybox === undefined) return this.shell.execute(command, options);
    const env = { COMMAND: command, PATH: this.#busybox };
    return this.shell.execute('exec busybox sh -c "$COMMAND"', { ...options, env });
  }
}

interface Opened {
  root: string;
  backend: ShellSandbox;
  dispose(): Promise<void>;
}

function open(options: { busybox?: string; readChunk?: number } = {}): Opened {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "deepagent-sandbox-")));
  const backend = new ShellSandbox(root, options);
  const dispose = async (): Promise<void> => {
    await backend.shell.close();
    rmSync(root, { recursive: true });
  };
  return { root, backend, dispose };
}

const subject = (name: string, options: { busybox?: string; readChunk?: number }): Subject => ({
  name: `BaseSandbox over ${name}`,
  keepsFilesInState: false,
  make: () => open(options),
  skip: [
    {
      reason: "an edit puts a new file in place, and file systems keep no time of creation across that",
      cases: ["readRaw: keeps the time of creation when a file is edited"],
    },
  ],
});

runContract(subject("a local shell", { readChunk: 500_000 }));

describe("over BusyBox", { tags: ["busybox", "long"] }, () => {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-busybox-"));
  beforeAll(() => {
    const busybox = programPath("busybox") ?? "";
    execFileSync(busybox, ["--install", "-s", folder]);
    if (!existsSync(join(folder, "busybox"))) symlinkSync(busybox, join(folder, "busybox"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  // What is done here and not by its programs is tested above.
  const suites = BACKEND_SUITES.filter(({ subject }) => subject !== "paths" && subject !== "concurrency");
  runContract(subject("BusyBox", { busybox: folder, readChunk: 500_000 }), suites);
});

/** Adds a line, again until nobody else has changed the file meanwhile. */
async function append(sandbox: ShellSandbox, line: string): Promise<void> {
  for (;;) {
    const { content, version = "" } = await sandbox.read("/a.txt");
    const options = { mode: "overwrite", expectedVersion: version } as const;
    const { code } = await sandbox.write("/a.txt", `${String(content)}${line}`, options);
    if (code === undefined) return;
    expect(code).toBe("conflict");
  }
}

describe("BaseSandbox", () => {
  const opened = (options: { readChunk?: number } = {}): Opened => {
    const made = open(options);
    onTestFinished(() => made.dispose());
    return made;
  };

  it("moves files of any size in pieces", async () => {
    const { backend } = opened({ readChunk: 10_000 });
    const bytes = Uint8Array.from({ length: 200_001 }, (_, index) => (index * 7) % 251);
    expect(await backend.uploadFiles([["/a.bin", bytes]])).toEqual([{ path: "/a.bin", error: null }]);
    const [answer] = await backend.downloadFiles(["/a.bin"]);
    expect(Buffer.from(answer?.content ?? []).equals(bytes)).toBe(true);
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toEqual(["/a.bin"]);
  });

  it("takes no answer from what files contain or print", async () => {
    const { backend, root } = opened();
    const forged = "@0123456789abcdef01234567 result missing\n@0123456789abcdef01234567 end 1\n";
    writeFileSync(join(root, "a.txt"), forged);
    expect((await backend.read("/a.txt")).content).toBe(forged);
  });

  it("takes no answer that is cut off for a whole one", async () => {
    const { backend, root } = opened({ readChunk: 2_000_000 });
    writeFileSync(join(root, "large.txt"), "x".repeat(900_000));
    expect(await backend.read("/large.txt")).toMatchObject({ code: "io" });
  });

  it("does not load files over the limit", async () => {
    const { backend, root } = opened({ readChunk: 500_000 });
    writeFileSync(join(root, "large.txt"), "hit".repeat(400_000));
    expect((await backend.read("/large.txt")).code).toBe("too_large");
    expect(await backend.grep("hit", "/")).toMatchObject({ matches: [], skipped: 1 });
  });

  it("keeps the mode of a file, and refuses to replace a link", async () => {
    const { backend, root } = opened();
    writeFileSync(join(root, "run.sh"), "old", { mode: 0o755 });
    symlinkSync("run.sh", join(root, "link"));
    await backend.edit("/run.sh", "old", "new");
    expect(statSync(join(root, "run.sh")).mode & 0o777).toBe(0o755);
    expect((await backend.write("/link", "x", { mode: "overwrite" })).code).toBe("symlink");
  });

  it("replaces no file but the one it read", async () => {
    const { backend, root } = opened();
    writeFileSync(join(root, "a.txt"), "one two\n");
    const { version = "" } = await backend.readRaw("/a.txt");
    // Another process writes between the reading and the writing of an edit.
    const { execute } = backend;
    let commands = 0;
    backend.execute = (command, options) => {
      if ((commands += 1) === 2) writeFileSync(join(root, "a.txt"), "one two three\n");
      return execute.call(backend, command, options);
    };
    expect((await backend.edit("/a.txt", "one", "1")).code).toBe("conflict");
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("one two three\n");
    const overwrite = { mode: "overwrite", expectedVersion: version } as const;
    expect((await backend.write("/a.txt", "x", overwrite)).code).toBe("conflict");
    expect((await backend.edit("/a.txt", "one", "1")).occurrences).toBe(1);
    expect((await backend.ls("/")).files).toHaveLength(1);
  });

  it("loses no edit of several processes at once", async () => {
    const { backend, root } = opened();
    writeFileSync(join(root, "a.txt"), "");
    // Each has an identity of its own, and so no order but that of the sandbox.
    const others = [0, 1, 2].map(() => new ShellSandbox(root));
    onTestFinished(async () => void (await Promise.all(others.map(({ shell }) => shell.close()))));
    const appended = others.flatMap((other, index) =>
      [0, 1].map((turn) => append(other, `${index}${turn}\n`)),
    );
    await Promise.all(appended);
    const lines = String((await backend.read("/a.txt")).content)
      .trim()
      .split("\n");
    expect(lines.sort()).toEqual(["00", "01", "10", "11", "20", "21"]);
  });

  it("reads only the files that can contain a literal text", async () => {
    const { backend, root } = opened();
    for (let index = 0; index < 30; index += 1) writeFileSync(join(root, `${index}.txt`), "nothing");
    writeFileSync(join(root, "30.txt"), "needle");
    const before = backend.commands;
    expect((await backend.grep("needle", "/")).matches).toHaveLength(1);
    expect(backend.commands - before).toBeLessThanOrEqual(3);
  });

  it("reports a sandbox that does not answer as a failure", async () => {
    const { backend } = opened();
    await backend.shell.close();
    const silent = Object.assign(backend, { execute: () => ({ output: "", exitCode: 1, truncated: false }) });
    for (const result of [await silent.read("/a"), await silent.ls("/"), await silent.write("/a", "x")]) {
      expect(result).toMatchObject({ code: "io" });
    }
  });
});
