import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MemoryTooLarge } from "../../../src/core/errors.ts";
import type { MemoryOptions, StoredMemories } from "../../../src/storage/memories/store.ts";
import { attempts } from "../../support/effort.ts";

const HERE = ["memories"];
const MB = 1024 * 1024;

/** What `StoredMemories` does in either database, beyond the interface of memories. */
export function storedMemoriesContract(
  name: string,
  open: (options?: MemoryOptions) => StoredMemories | Promise<StoredMemories>,
): void {
  describe(`stored memories in ${name}`, () => {
    const keys = (items: readonly { key: string }[]) => items.map(({ key }) => key);

    test.each<[string, Record<string, unknown>]>([
      ["of one text", { content: "x".repeat(MB + 1) }],
      ["of characters of three bytes", { content: "한".repeat(MB / 3 + 1) }],
      ["of many texts", { content: Array.from({ length: 1100 }, () => "x".repeat(1000)) }],
      ["of a long name", { ["x".repeat(MB + 1)]: 1 }],
      ["of many numbers", { list: Array.from({ length: 300_000 }, () => 12_345) }],
    ])("a memory over 1 MB is refused with one text, whoever writes it: %s", async (_what, value) => {
      const store = await open();
      await store.put(HERE, "/a.md", { content: "before" });
      const version = (await store.getVersioned(HERE, "/a.md"))?.version ?? "";
      const refused = expect.objectContaining({
        code: "memory_too_large",
        message: expect.stringMatching(
          /^'\/a\.md' is too large for a memory: it has [\d,]+ bytes, and a memory has at most 1 MB \(1,048,576 bytes\)\. Split it/,
        ),
      });
      await expect(store.put(HERE, "/a.md", value)).rejects.toEqual(refused);
      await expect(store.put(HERE, "/a.md", value)).rejects.toBeInstanceOf(MemoryTooLarge);
      await expect(store.putIf(HERE, "/a.md", value, version)).rejects.toEqual(refused);
      const batch = [
        { namespace: HERE, key: "/b.md", value: { content: "small" } },
        { namespace: HERE, key: "/a.md", value },
      ];
      await expect(store.batch(batch)).rejects.toEqual(refused);
      expect(keys(await store.search(HERE))).toEqual(["/a.md"]);
      expect((await store.get(HERE, "/a.md"))?.value).toEqual({ content: "before" });
    });

    test("quotes and escapes of the stored form do not count", async () => {
      const store = await open();
      const content = '"\\\n'.repeat(MB / 3 - 10);
      await store.put(HERE, "/a.md", { content });
      expect((await store.get(HERE, "/a.md"))?.value).toEqual({ content });
    });

    test("a listing goes on behind a key, also to those that begin with it", async () => {
      const store = await open();
      for (const key of ["/a", "/a.bak", "/a/b", "/b"]) await store.put(HERE, key, {});
      const from = async (key: string) =>
        keys(await store.itemsBetween(HERE, { from: key, to: "0", limit: 9 }));
      expect(await from("/a")).toEqual(["/a", "/a.bak", "/a/b", "/b"]);
      expect(await from("/a\0")).toEqual(["/a.bak", "/a/b", "/b"]);
      expect(await from("/a.bak\0")).toEqual(["/a/b", "/b"]);
    });

    test("a listing leaves out the rest of the folders that its caller skips", async () => {
      const store = await open();
      const folder = (name: string) => ["a", "b", "c"].map((file) => `/${name}/${file}`);
      const all = ["/0", ...folder("d"), ...folder("e"), ...folder("f"), "/g"];
      await store.batch(all.map((key) => ({ namespace: HERE, key, value: { key } })));
      const skip = ({ key }: { key: string }) => (/^\/[de]\//.test(key) ? key.slice(0, 3) : undefined);
      const from = async (place: string, limit: number) =>
        keys(await store.itemsBetween(HERE, { from: place, to: "0", limit, skip }));
      const wanted = ["/0", "/d/a", "/e/a", ...folder("f"), "/g"];
      expect(await from("/", 50)).toEqual(wanted);
      expect(await from("/", 2)).toEqual(wanted.slice(0, 2));
      expect(await from("/d0", 50)).toEqual(wanted.slice(2));
      expect(await from("/f/b\0", 50)).toEqual(wanted.slice(-2));
      expect(await from("/g\0", 50)).toEqual([]);
    });

    test("listings and searches of any length give each item once and in order", async () => {
      const store = await open();
      const all = Array.from({ length: 700 }, (_, index) => String(index).padStart(3, "0"));
      const size = (index: number) => (index % 97 === 0 ? 90_000 : 10);
      await store.batch(
        all.map((key, index) => ({
          namespace: HERE,
          key,
          value: { content: `${"x".repeat(size(index))} ${index % 7 === 0 ? "nee*dle" : "hay"}` },
        })),
      );
      const to = "9";
      expect(keys(await store.itemsBetween(HERE, { from: "001", to, limit: 500 }))).toEqual(
        all.slice(1, 501),
      );
      expect(keys(await store.search(HERE, { limit: 600, offset: 50 }))).toEqual(all.slice(50, 650));
      const sevenths = all.filter((_, index) => index % 7 === 0);
      const containing = async (limit: number, ...texts: string[]) =>
        keys(await store.itemsBetween(HERE, { from: "", to, limit, containing: texts }));
      expect(await containing(1000, "nee*dle")).toEqual(sevenths);
      expect(await containing(9, "nee*dle", "none")).toEqual(sevenths.slice(0, 9));
      expect(await containing(1000, "n*dle")).toEqual([]);
      expect(await containing(1000, "hay", "nee")).toEqual(all);
      // Inside of words, where no word begins so.
      expect(keys(await store.searchText(HERE, "eedle", 1000))).toEqual([]);
      expect(keys(await store.searchText(HERE, "ee dle", 1000))).toEqual(sevenths);
    });

    test("a text is found whatever its characters are, and others are left out", async () => {
      const store = await open();
      const piece = fc.oneof(
        fc.constantFrom(...'" \\ \n * ? [ ] % _ é 😀 \ud83d \ude00 a A'.split(" ")),
        fc.string({ unit: "binary", maxLength: 2 }).map((text) => text.replaceAll("\0", "")),
      );
      const text = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join(""));
      await fc.assert(
        fc.asyncProperty(text, text, text, async (before, middle, after) => {
          const wanted = `needle${middle}needle`;
          await store.put(HERE, "with", { lines: [`${before}${wanted}${after}`] });
          await store.put(HERE, "without", { lines: [before] });
          const found = keys(
            await store.itemsBetween(HERE, { from: "", to: "x", limit: 9, containing: [wanted] }),
          );
          expect(found).toContain("with");
          // Half of a character stands for any text.
          expect(found.includes("without")).toBe(!wanted.isWellFormed());
        }),
        attempts(100),
      );
    });

    test("more items than one sweep takes are swept", async () => {
      let now = 0;
      const store = await open({ clock: () => now, ttl: { defaultTtl: 1, sweepIntervalMinutes: 1e9 } });
      const puts = Array.from({ length: 130 }, (_, index) => ({
        namespace: HERE,
        key: `${index}`,
        value: {},
      }));
      await store.batch(puts);
      now = 60_000;
      expect(await store.sweepExpiredItems()).toBe(130);
      expect(await store.sweepExpiredItems()).toBe(0);
    });
  });
}
