import { expect } from "vitest";
import { type Suite, textOf } from "./contract.ts";

const MANY = Array.from({ length: 20 }, (_, index) => index);

export const concurrencySuite: Suite = {
  subject: "concurrency",
  cases: {
    "one of many parallel creates wins, the others are told": async ({ backend, at }) => {
      const results = await Promise.all(
        MANY.map(async (index) => backend.write(at("/a/a.txt"), `writer ${index}`)),
      );
      const winners = results.flatMap((result, index) => (result.error === undefined ? [index] : []));
      expect(winners).toHaveLength(1);
      expect(results.filter((result) => result.code === "exists")).toHaveLength(MANY.length - 1);
      expect(textOf(await backend.read(at("/a/a.txt")))).toBe(`writer ${winners[0]}`);
    },
    "every one of many parallel edits lands": async ({ backend, at, put }) => {
      await put("/a.txt", MANY.map((index) => `<${index}>`).join("\n"));
      const results = await Promise.all(
        MANY.map(async (index) => backend.edit(at("/a.txt"), `<${index}>`, `[${index}]`)),
      );
      expect(results.map((result) => result.error)).toEqual(MANY.map(() => undefined));
      expect(textOf(await backend.read(at("/a.txt")))).toBe(MANY.map((index) => `[${index}]`).join("\n"));
    },
    "one of many edits of the same version lands": async ({ backend, at, put }) => {
      await put("/a.txt", "value 0");
      const { version = "" } = await backend.read(at("/a.txt"));
      const results = await Promise.all(
        MANY.map(async (index) =>
          backend.edit(at("/a.txt"), "value", `value${index}`, false, { expectedVersion: version }),
        ),
      );
      expect(results.filter((result) => result.error === undefined)).toHaveLength(1);
      expect(results.filter((result) => result.code === "conflict")).toHaveLength(MANY.length - 1);
    },
    "a reader sees the old content or the new": async ({ backend, at, put }) => {
      const contents = ["a".repeat(300_000), "b".repeat(200_000)];
      await put("/a.txt", contents[0] ?? "");
      const seen = await Promise.all(
        MANY.map(async (index) => {
          if (index % 2 === 0) {
            await backend.write(at("/a.txt"), contents[(index / 2) % 2] ?? "", { mode: "overwrite" });
          }
          return textOf(await backend.read(at("/a.txt")));
        }),
      );
      expect(seen.every((content) => contents.includes(content))).toBe(true);
    },
  },
};
