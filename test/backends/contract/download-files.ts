import { expect } from "vitest";
import type { Suite } from "./contract.ts";

export const downloadFilesSuite: Suite = {
  subject: "downloadFiles",
  cases: {
    "gives the bytes that were put, in order": async ({ backend, at, put }) => {
      const all = Uint8Array.from({ length: 256 }, (_, index) => index);
      await put("/all.bin", all);
      await put("/all.txt", all);
      await put("/text.txt", "\ufeffa\r\nb");
      const answers = await backend.downloadFiles?.([at("/text.txt"), at("/all.bin"), at("/all.txt")]);
      expect(answers).toEqual([
        { path: at("/text.txt"), content: new TextEncoder().encode("\ufeffa\r\nb"), error: null },
        { path: at("/all.bin"), content: all, error: null },
        { path: at("/all.txt"), content: all, error: null },
      ]);
    },
    "says for each file what is wrong": async ({ backend, at, put }) => {
      await put("/a.txt", "a");
      const answers = await backend.downloadFiles?.([at("/missing.txt"), "", at("/a.txt")]);
      expect(answers?.map(({ error }) => error)).toEqual(["file_not_found", "invalid_path", null]);
      expect(answers?.map(({ content }) => content === null)).toEqual([true, true, false]);
    },
  },
};
