import { expect } from "vitest";
import type { Suite } from "./contract.ts";

export const uploadFilesSuite: Suite = {
  subject: "uploadFiles",
  cases: {
    "puts and replaces files, and answers in order": async ({ backend, at }) => {
      const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
      const first = await backend.uploadFiles?.([
        [at("/b/x.txt"), bytes("one")],
        [at("/a.txt"), bytes("two")],
      ]);
      expect(first).toMatchObject([
        { path: at("/b/x.txt"), error: null },
        { path: at("/a.txt"), error: null },
      ]);
      await backend.uploadFiles?.([[at("/a.txt"), bytes("three")]]);
      expect((await backend.read(at("/a.txt"))).content).toBe("three");
    },
    "returns the change only when files are in state": async ({ backend, at, keepsFilesInState }) => {
      const [answer] = (await backend.uploadFiles?.([[at("/a.txt"), Uint8Array.from([97])]])) ?? [];
      if (keepsFilesInState) expect(answer?.filesUpdate).toMatchObject({ [at("/a.txt")]: { content: "a" } });
      else expect(answer?.filesUpdate ?? null).toBeNull();
    },
    "one bad file does not stop the others": async ({ backend, at }) => {
      const answers = await backend.uploadFiles?.([
        ["", Uint8Array.from([97])],
        [at("/a.txt"), Uint8Array.from([97])],
        [at("/"), Uint8Array.from([97])],
      ]);
      expect(answers?.map(({ error }) => error)).toEqual(["invalid_path", null, "is_directory"]);
    },
    "a later change of the caller's buffer changes no file": async ({ backend, at }) => {
      const bytes = Uint8Array.from([1, 0, 2]);
      await backend.uploadFiles?.([[at("/a.bin"), bytes]]);
      bytes.fill(9);
      expect((await backend.read(at("/a.bin"))).content).toEqual(Uint8Array.from([1, 0, 2]));
    },
  },
};
