import { expect } from "vitest";
import { fileNotFound, isDirectory, notUtf8, offsetPastEnd } from "../../../src/backends/errors.ts";
import { type Suite, textOf } from "./contract.ts";

export const readSuite: Suite = {
  subject: "read",
  cases: {
    "gives the text as it is, and where it is": async ({ backend, at, put }) => {
      await put("/a.md", "one\ntwo\nthree");
      expect(await backend.read(at("/a.md"))).toMatchObject({
        content: "one\ntwo\nthree",
        mimeType: "text/markdown",
        startLine: 0,
        endLine: 3,
        totalLines: 3,
      });
      expect((await backend.read(at("/a.md"))).nextOffset).toBeUndefined();
    },
    "a page ends where the next one starts": async ({ backend, at, put }) => {
      await put("/a.txt", "0\n1\n2\n3\n4\n");
      const page = await backend.read(at("/a.txt"), 1, 2);
      expect(page).toMatchObject({ content: "1\n2\n", startLine: 1, endLine: 3, nextOffset: 3 });
      const last = await backend.read(at("/a.txt"), 3, 2);
      expect(last).toMatchObject({ content: "3\n4\n", endLine: 5, totalLines: 5 });
      expect(last.nextOffset).toBeUndefined();
    },
    "pages put together are the file": async ({ backend, at, put }) => {
      const content = "a\r\n\n\nb\nc\r\n  \nlast";
      await put("/a.txt", content);
      let together = "";
      let offset: number | undefined = 0;
      while (offset !== undefined) {
        const page: Awaited<ReturnType<typeof backend.read>> = await backend.read(at("/a.txt"), offset, 2);
        together += textOf(page);
        offset = page.nextOffset;
      }
      expect(together).toBe(content);
    },
    "a byte order mark is not part of the text": async ({ backend, at, put }) => {
      await put("/a.txt", "\ufeffone\n");
      expect(textOf(await backend.read(at("/a.txt")))).toBe("one\n");
    },
    "an empty file is not a missing one": async ({ backend, at, put }) => {
      await put("/a.txt", "");
      expect(await backend.read(at("/a.txt"))).toMatchObject({ content: "", totalLines: 0 });
    },
    "a file of blanks is shown as it is": async ({ backend, at, put }) => {
      await put("/a.txt", " \n\n");
      expect(await backend.read(at("/a.txt"))).toMatchObject({ content: " \n\n", totalLines: 2 });
    },
    "an offset past the end names the number of lines": async ({ backend, at, put }) => {
      await put("/a.txt", "0\n1\n");
      expect(await backend.read(at("/a.txt"), 2)).toEqual(offsetPastEnd(2, 2));
      expect(await backend.read(at("/a.txt"), 99, 5)).toEqual(offsetPastEnd(99, 2));
    },
    "a negative offset is the beginning": async ({ backend, at, put }) => {
      await put("/a.txt", "0\n1\n");
      expect(await backend.read(at("/a.txt"), -5, 1)).toMatchObject({ content: "0\n", startLine: 0 });
    },
    "a missing file and a directory are told apart": async ({ backend, at, put }) => {
      await put("/a/b.txt", "b");
      expect(await backend.read(at("/a/c.txt"))).toEqual(fileNotFound(at("/a/c.txt")));
      expect(await backend.read(at("/a"))).toEqual(isDirectory(at("/a")));
    },
    "nothing lies below a file": async ({ backend, at, put }) => {
      await put("/a.txt", "a");
      expect(await backend.read(at("/a.txt/b"))).toEqual(fileNotFound(at("/a.txt/b")));
    },
    "a binary file is given as bytes, by its type": async ({ backend, at, put }) => {
      const bytes = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 255]);
      await put("/a.png", bytes);
      expect(await backend.read(at("/a.png"))).toMatchObject({ content: bytes, mimeType: "image/png" });
    },
    "a binary file is given as bytes, by its content": async ({ backend, at, put }) => {
      const bytes = Uint8Array.from([97, 10, 0, 98]);
      await put("/a.txt", bytes);
      expect(await backend.read(at("/a.txt"))).toMatchObject({
        content: bytes,
        mimeType: "application/octet-stream",
      });
    },
    "text in another encoding is refused": async ({ backend, at, put }) => {
      await put("/a.txt", Uint8Array.from([0x63, 0x61, 0x66, 0xe9, 10]));
      expect(await backend.read(at("/a.txt"))).toEqual(notUtf8(at("/a.txt")));
    },
    "the version changes with the content": async ({ backend, at, put }) => {
      await put("/a.txt", "one");
      const { version } = await backend.read(at("/a.txt"));
      expect(version).toBeTruthy();
      expect((await backend.read(at("/a.txt"))).version).toBe(version);
      await put("/a.txt", "two");
      expect((await backend.read(at("/a.txt"))).version).not.toBe(version);
    },
  },
};
