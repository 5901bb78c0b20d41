import { expect } from "vitest";
import {
  alreadyExists,
  changedSinceRead,
  invalidBase64,
  isDirectory,
  parentIsFile,
} from "../../../src/backends/errors.ts";
import { type Suite, textOf } from "./contract.ts";

export const writeSuite: Suite = {
  subject: "write",
  cases: {
    "makes a file with its directories, readable at once": async ({ backend, at }) => {
      const result = await backend.write(at("/a/b/c.txt"), "text\n");
      expect(result).toMatchObject({ path: at("/a/b/c.txt") });
      expect(result.error).toBeUndefined();
      expect(textOf(await backend.read(at("/a/b/c.txt")))).toBe("text\n");
      expect((await backend.read(at("/a/b/c.txt"))).version).toBe(result.version);
    },
    "returns the change only when files are in state": async ({ backend, at, keepsFilesInState }) => {
      const { filesUpdate } = await backend.write(at("/a.txt"), "text");
      if (!keepsFilesInState) expect(filesUpdate).toBeNull();
      else expect(filesUpdate).toMatchObject({ [at("/a.txt")]: { content: "text", mimeType: "text/plain" } });
    },
    "does not touch an existing file": async ({ backend, at, put }) => {
      await put("/a.txt", "old");
      expect(await backend.write(at("/a.txt"), "new")).toEqual(alreadyExists(at("/a.txt")));
      expect(textOf(await backend.read(at("/a.txt")))).toBe("old");
    },
    "overwrites when asked to": async ({ backend, at, put }) => {
      await put("/a.txt", "old and longer");
      expect((await backend.write(at("/a.txt"), "new", { mode: "overwrite" })).error).toBeUndefined();
      expect((await backend.write(at("/b.txt"), "new", { mode: "overwrite" })).error).toBeUndefined();
      expect(textOf(await backend.read(at("/a.txt")))).toBe("new");
      expect(textOf(await backend.read(at("/b.txt")))).toBe("new");
    },
    "overwrites only the expected version": async ({ backend, at, put }) => {
      await put("/a.txt", "one");
      const { version = "" } = await backend.read(at("/a.txt"));
      await put("/a.txt", "two");
      const stale = { mode: "overwrite", expectedVersion: version } as const;
      expect(await backend.write(at("/a.txt"), "three", stale)).toEqual(changedSinceRead(at("/a.txt")));
      expect(textOf(await backend.read(at("/a.txt")))).toBe("two");
      const fresh = (await backend.read(at("/a.txt"))).version ?? "";
      const done = await backend.write(at("/a.txt"), "three", { mode: "overwrite", expectedVersion: fresh });
      expect(done.error).toBeUndefined();
    },
    "an empty file can be made": async ({ backend, at }) => {
      expect((await backend.write(at("/a.txt"), "")).error).toBeUndefined();
      expect(await backend.read(at("/a.txt"))).toMatchObject({ content: "" });
    },
    "a directory is not replaced": async ({ backend, at, put }) => {
      await put("/a/b.txt", "b");
      expect(await backend.write(at("/a"), "x")).toEqual(isDirectory(at("/a")));
      expect(await backend.write(at("/a"), "x", { mode: "overwrite" })).toEqual(isDirectory(at("/a")));
      expect(textOf(await backend.read(at("/a/b.txt")))).toBe("b");
    },
    "a file is no directory": async ({ backend, at, put }) => {
      await put("/a.txt", "a");
      expect(await backend.write(at("/a.txt/b.txt"), "x")).toEqual(parentIsFile(at("/a.txt/b.txt")));
      expect(textOf(await backend.read(at("/a.txt")))).toBe("a");
    },
    "the root is a directory": async ({ backend, at }) => {
      expect(await backend.write(at("/"), "x")).toEqual(isDirectory(at("/")));
    },
    "content of a binary type is base64": async ({ backend, at }) => {
      const bytes = Uint8Array.from([0x89, 0x50, 0, 255]);
      const written = await backend.write(at("/a.png"), Buffer.from(bytes).toString("base64"));
      expect(written.error).toBeUndefined();
      expect((await backend.read(at("/a.png"))).content).toEqual(bytes);
      expect(await backend.write(at("/b.png"), "not base64!")).toEqual(
        invalidBase64(at("/b.png"), "image/png"),
      );
      expect((await backend.read(at("/b.png"))).code).toBe("not_found");
    },
  },
};
