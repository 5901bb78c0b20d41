import { expect } from "vitest";
import { fileNotFound, isDirectory } from "../../../src/backends/errors.ts";
import type { Suite } from "./contract.ts";

export const readRawSuite: Suite = {
  subject: "readRaw",
  cases: {
    "gives the whole text with its type and times": async ({ backend, at, put }) => {
      await put("/a.md", "\ufeffone\r\ntwo");
      const { data, version } = await backend.readRaw(at("/a.md"));
      expect(data).toMatchObject({ content: "\ufeffone\r\ntwo", mimeType: "text/markdown" });
      for (const time of [data?.created_at, data?.modified_at]) {
        expect(new Date(time ?? "").toISOString()).toBe(time);
      }
      expect(version).toBe((await backend.read(at("/a.md"))).version);
    },
    "gives bytes of what is not text": async ({ backend, at, put }) => {
      await put("/a.bin", Uint8Array.from([1, 0, 2]));
      const { data } = await backend.readRaw(at("/a.bin"));
      expect(data?.content).toEqual(Uint8Array.from([1, 0, 2]));
    },
    "keeps the time of creation when a file is edited": async ({ backend, at, put }) => {
      await put("/a.txt", "one");
      const before = await backend.readRaw(at("/a.txt"));
      await backend.edit(at("/a.txt"), "one", "two");
      const after = await backend.readRaw(at("/a.txt"));
      expect(after.data?.created_at).toBe(before.data?.created_at);
    },
    "a missing file and a directory are told apart": async ({ backend, at, put }) => {
      await put("/a/b.txt", "b");
      expect(await backend.readRaw(at("/c.txt"))).toEqual(fileNotFound(at("/c.txt")));
      expect(await backend.readRaw(at("/a"))).toEqual(isDirectory(at("/a")));
    },
  },
};
