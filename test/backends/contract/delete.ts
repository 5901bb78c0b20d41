import { expect } from "vitest";
import { fileNotFound, refusedToDelete } from "../../../src/backends/errors.ts";
import { type Bench, type Suite, pathsOf } from "./contract.ts";

const remove = async ({ backend, at }: Bench, path: string) => backend.delete?.(at(path));

export const deleteSuite: Suite = {
  subject: "delete",
  cases: {
    "removes one file": async (bench) => {
      const { backend, at, put, keepsFilesInState } = bench;
      await put("/a.txt", "a");
      await put("/a.txt.bak", "b");
      const update = keepsFilesInState ? { [at("/a.txt")]: null } : null;
      expect(await remove(bench, "/a.txt")).toEqual({ path: at("/a.txt"), filesUpdate: update });
      expect(await backend.read(at("/a.txt"))).toEqual(fileNotFound(at("/a.txt")));
      expect(pathsOf(await backend.ls(at("/")))).toEqual([at("/a.txt.bak")]);
    },
    "removes a directory with everything in it": async (bench) => {
      const { backend, at, put } = bench;
      await put("/a/one.txt", "1");
      await put("/a/b/two.txt", "2");
      await put("/ab.txt", "3");
      expect((await remove(bench, "/a"))?.error).toBeUndefined();
      expect(pathsOf(await backend.glob("**", at("/")))).toEqual([at("/ab.txt")]);
    },
    "a file can be made again after it was removed": async (bench) => {
      const { backend, at, put } = bench;
      await put("/a.txt", "a");
      await remove(bench, "/a.txt");
      expect((await backend.write(at("/a.txt"), "b")).error).toBeUndefined();
    },
    "says when nothing is there": async (bench) => {
      await bench.put("/ab.txt", "x");
      expect(await remove(bench, "/a")).toEqual(fileNotFound(bench.at("/a")));
    },
    "refuses the root": async (bench) => {
      await bench.put("/a.txt", "a");
      expect(await remove(bench, "/")).toEqual(refusedToDelete(bench.at("/")));
      expect((await bench.backend.read(bench.at("/a.txt"))).error).toBeUndefined();
    },
  },
};
