import { expect } from "vitest";
import * as errors from "../../../src/backends/errors.ts";
import { type Suite, textOf } from "./contract.ts";

export const editSuite: Suite = {
  subject: "edit",
  cases: {
    "replaces the one occurrence": async ({ backend, at, put }) => {
      await put("/a.txt", "one two three\n");
      const result = await backend.edit(at("/a.txt"), "two", "2");
      expect(result).toMatchObject({ path: at("/a.txt"), occurrences: 1 });
      expect(textOf(await backend.read(at("/a.txt")))).toBe("one 2 three\n");
      expect((await backend.read(at("/a.txt"))).version).toBe(result.version);
    },
    "returns the change only when files are in state": async ({ backend, at, put, keepsFilesInState }) => {
      await put("/a.txt", "one");
      const { filesUpdate } = await backend.edit(at("/a.txt"), "one", "two");
      if (!keepsFilesInState) expect(filesUpdate).toBeNull();
      else expect(filesUpdate).toMatchObject({ [at("/a.txt")]: { content: "two" } });
    },
    "needs to know which of several is meant": async ({ backend, at, put }) => {
      await put("/a.txt", "ab ab ab");
      expect(await backend.edit(at("/a.txt"), "ab", "x")).toEqual(errors.stringAmbiguous("ab", 3));
      expect(await backend.edit(at("/a.txt"), "ab", "x", true)).toMatchObject({ occurrences: 3 });
      expect(textOf(await backend.read(at("/a.txt")))).toBe("x x x");
    },
    "says when nothing matches": async ({ backend, at, put }) => {
      await put("/a.txt", "one");
      expect(await backend.edit(at("/a.txt"), "two", "x")).toEqual(errors.stringNotFound("two"));
      // The text may look like the path; it is still the text that is quoted.
      expect(await backend.edit(at("/a.txt"), "/a.txt", "x")).toEqual(errors.stringNotFound("/a.txt"));
    },
    "both strings are literal": async ({ backend, at, put }) => {
      await put("/a.txt", "a.c $1 abc");
      await backend.edit(at("/a.txt"), "a.c", "$& $1 \\n {}%s");
      expect(textOf(await backend.read(at("/a.txt")))).toBe("$& $1 \\n {}%s $1 abc");
    },
    "text with LF edits lines with CRLF, which stay": async ({ backend, at, put }) => {
      await put("/a.txt", "one\r\ntwo\r\nthree\r\n");
      expect(await backend.edit(at("/a.txt"), "one\ntwo\n", "1\n2\n")).toMatchObject({ occurrences: 1 });
      expect(textOf(await backend.read(at("/a.txt")))).toBe("1\r\n2\r\nthree\r\n");
    },
    "a byte order mark stays": async ({ backend, at, put }) => {
      await put("/a.txt", "\ufeffone\n");
      await backend.edit(at("/a.txt"), "one", "two");
      expect((await backend.readRaw(at("/a.txt"))).data?.content).toBe("\ufefftwo\n");
    },
    "an empty string stands for an empty file only": async ({ backend, at, put }) => {
      await put("/empty.txt", "");
      await put("/full.txt", "x");
      expect((await backend.edit(at("/empty.txt"), "", "text")).error).toBeUndefined();
      expect(textOf(await backend.read(at("/empty.txt")))).toBe("text");
      expect(await backend.edit(at("/full.txt"), "", "text")).toEqual(errors.emptyOldString());
    },
    "equal strings change nothing": async ({ backend, at, put }) => {
      await put("/a.txt", "one");
      expect(await backend.edit(at("/a.txt"), "one", "one")).toEqual(errors.identicalStrings());
    },
    "a missing file and a directory are told apart": async ({ backend, at, put }) => {
      await put("/a/b.txt", "b");
      expect(await backend.edit(at("/c.txt"), "a", "b")).toEqual(errors.fileNotFound(at("/c.txt")));
      expect(await backend.edit(at("/a"), "a", "b")).toEqual(errors.isDirectory(at("/a")));
    },
    "a binary file is not edited": async ({ backend, at, put }) => {
      await put("/a.bin", Uint8Array.from([97, 0, 98]));
      expect(await backend.edit(at("/a.bin"), "a", "b")).toEqual(errors.binaryEdit(at("/a.bin")));
      await put("/a.png", "text");
      expect(await backend.edit(at("/a.png"), "text", "b")).toEqual(errors.binaryEdit(at("/a.png")));
    },
    "text in another encoding is not edited": async ({ backend, at, put }) => {
      await put("/a.txt", Uint8Array.from([97, 0xe9]));
      expect(await backend.edit(at("/a.txt"), "a", "b")).toEqual(errors.notUtf8(at("/a.txt")));
    },
    "edits only the expected version": async ({ backend, at, put }) => {
      await put("/a.txt", "one");
      const { version = "" } = await backend.read(at("/a.txt"));
      const stale = { expectedVersion: version };
      expect((await backend.edit(at("/a.txt"), "one", "two", false, stale)).error).toBeUndefined();
      expect(await backend.edit(at("/a.txt"), "two", "three", false, stale)).toEqual(
        errors.changedSinceRead(at("/a.txt")),
      );
      expect(textOf(await backend.read(at("/a.txt")))).toBe("two");
    },
  },
};
