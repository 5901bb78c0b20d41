import { describe, expect, it } from "vitest";
import type { FileData } from "../../src/backends/backend.ts";
import { errors } from "../../src/backends/errors.ts";
import { resolveBackend, snapshotFiles } from "../../src/backends/runtime.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";

const at = (milliseconds: number): string => new Date(milliseconds).toISOString();
const times = { created_at: at(0), modified_at: at(0) };

describe("StateBackend", () => {
  it("is tied to each call it is resolved for, and has no files on its own", async () => {
    const backend = new StateBackend();
    const threads = ["one", "two"].map((thread) => ({ files: snapshotFiles(), threadId: thread }));
    await Promise.all(
      threads.map(async (runtime) =>
        (await resolveBackend(backend, runtime)).write("/a.txt", runtime.threadId),
      ),
    );
    for (const runtime of threads) {
      expect((await (await resolveBackend(backend, runtime)).read("/a.txt")).content).toBe(runtime.threadId);
    }
    expect(backend.read("/a.txt")).toEqual(errors.threadFilesMissing());
  });

  it("keeps the time of creation and sets that of the change", () => {
    let now = 1000;
    const backend = new StateBackend({ files: snapshotFiles() }, { clock: () => now });
    backend.write("/a.txt", "one");
    now = 2000;
    const { filesUpdate } = backend.edit("/a.txt", "one", "two");
    expect(filesUpdate?.["/a.txt"]).toEqual({
      content: "two",
      mimeType: "text/plain",
      created_at: at(1000),
      modified_at: at(2000),
    });
  });

  it("takes the runtime of deepagents, and gives the change of all uploads on their list", () => {
    const state = { files: { "/a.txt": { content: "one", mimeType: "text/plain", ...times } } };
    const backend = new StateBackend({ state }, { clock: () => 0 });
    expect(backend.read("/a.txt").content).toBe("one");
    const bytes = new TextEncoder().encode("x");
    const answers = backend.uploadFiles([
      ["/b.txt", bytes],
      ["/c.txt", bytes],
    ]);
    const { filesUpdate } = answers as { filesUpdate?: Record<string, FileData> };
    expect(Object.keys(filesUpdate ?? {})).toEqual(["/b.txt", "/c.txt"]);
    expect(answers.map(({ error }) => error)).toEqual([null, null]);
  });

  it("reads lines of version 1 and writes them when asked to", () => {
    const files = snapshotFiles({ "/old.txt": { content: ["one", "two", ""], ...times } });
    const backend = new StateBackend({ files }, { fileFormat: "v1", clock: () => 0 });
    expect(backend.read("/old.txt").content).toBe("one\ntwo\n");
    expect(backend.write("/new.txt", "a\nb").filesUpdate).toEqual({
      "/new.txt": { content: ["a", "b"], ...times },
    });
  });

  it("reads bytes kept as base64 under a binary type", () => {
    const files = snapshotFiles({ "/a.png": { content: "AAE=", mimeType: "image/png", ...times } });
    expect(new StateBackend({ files }).read("/a.png").content).toEqual(Uint8Array.from([0, 1]));
  });
});

describe("snapshotFiles", () => {
  it("leaves the record alone and shows changes at once", () => {
    const record: Record<string, FileData> = { "/a.txt": { content: ["a"], ...times } };
    const files = snapshotFiles(record);
    const added: FileData = { content: "b", mimeType: "text/plain", ...times };
    files.apply({ "/a.txt": null, "/b.txt": added });
    expect(files.get("/a.txt")).toBeUndefined();
    expect(files.get("/b.txt")).toBe(added);
    expect([...files.entries()]).toEqual([["/b.txt", added]]);
    expect(Object.keys(record)).toEqual(["/a.txt"]);
    files.apply({ "/a.txt": added });
    expect([...files.entries()].map(([path]) => path).sort()).toEqual(["/a.txt", "/b.txt"]);
  });

  it("does not take inherited members for files", () => {
    const files = snapshotFiles({});
    expect(files.get("constructor")).toBeUndefined();
    expect(files.get("__proto__")).toBeUndefined();
  });
});
