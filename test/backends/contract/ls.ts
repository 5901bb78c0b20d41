import { expect } from "vitest";
import { directoryNotFound } from "../../../src/backends/errors.ts";
import { type Suite, pathsOf } from "./contract.ts";

export const lsSuite: Suite = {
  subject: "ls",
  cases: {
    "an empty root has no entries": async ({ backend, at }) => {
      const result = await backend.ls(at("/"));
      expect(result.error).toBeUndefined();
      expect(result.files).toEqual([]);
    },
    "entries are sorted by path, directories end in a slash": async ({ backend, at, put }) => {
      await put("/b.txt", "b");
      await put("/a/one.txt", "1");
      await put("/a/deep/two.txt", "2");
      await put("/a-b.txt", "-");
      const result = await backend.ls(at("/"));
      expect(pathsOf(result)).toEqual([at("/a-b.txt"), at("/a/"), at("/b.txt")]);
      expect(result.files?.map((file) => file.is_dir === true)).toEqual([false, true, false]);
      expect(pathsOf(await backend.ls(at("/a")))).toEqual([at("/a/deep/"), at("/a/one.txt")]);
    },
    "a trailing slash makes no difference": async ({ backend, at, put }) => {
      await put("/a/one.txt", "1");
      expect(await backend.ls(`${at("/a")}/`)).toEqual(await backend.ls(at("/a")));
    },
    "a file has its size in bytes and the time of its change": async ({ backend, at, put }) => {
      await put("/a.txt", "äöü\n");
      const [file] = (await backend.ls(at("/"))).files ?? [];
      expect(file).toMatchObject({ path: at("/a.txt"), size: 7 });
      expect(new Date(file?.modified_at ?? "").toISOString()).toBe(file?.modified_at);
    },
    "the path of a file lists that file": async ({ backend, at, put }) => {
      await put("/a/one.txt", "one");
      await put("/a/one.txt.bak", "two");
      expect((await backend.ls(at("/a/one.txt"))).files).toMatchObject([{ path: at("/a/one.txt"), size: 3 }]);
    },
    "a missing directory is told": async ({ backend, at, put }) => {
      await put("/ab/x.txt", "x");
      expect(await backend.ls(at("/a"))).toEqual(directoryNotFound(at("/a")));
    },
  },
};
