import { join } from "node:path";
import {
  AsyncBatchedStore,
  InMemoryStore,
  type Operation,
  type OperationResults,
} from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { errors } from "../../../src/backends/errors.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { StoreBackend } from "../../../src/backends/stores/langgraph-store.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { createStore, type SqliteStore } from "../../../src/storage/sqlite/memories/store.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { attempts } from "../../support/effort.ts";
import { filesIn } from "../../support/files-in.ts";
import { opened } from "../../storage/support.ts";

/** A store that notes what is asked of it. */
class NotingStore extends InMemoryStore {
  readonly operations: Operation[] = [];

  override async batch<Op extends readonly Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    this.operations.push(...operations);
    return super.batch(operations);
  }
}

const runtime = (store: InMemoryStore | undefined, assistantId?: string) => ({
  files: snapshotFiles(),
  ...(store === undefined ? {} : { store }),
  ...(assistantId === undefined ? {} : { assistantId }),
});

describe("StoreBackend", () => {
  it("shares files between threads, apart by assistant", async () => {
    const store = new InMemoryStore();
    await new StoreBackend(runtime(store, "one")).write("/a.md", "a");
    expect((await new StoreBackend(runtime(store, "one")).read("/a.md")).content).toBe("a");
    expect((await new StoreBackend(runtime(store, "two")).read("/a.md")).code).toBe("not_found");
    expect((await new StoreBackend(runtime(store)).read("/a.md")).code).toBe("not_found");
    expect(await store.get(["one", "filesystem"], "/a.md")).toMatchObject({
      value: { content: "a", mimeType: "text/markdown" },
    });
  });

  it("keeps files where the namespace says", async () => {
    const store = new InMemoryStore();
    await new StoreBackend({ store, namespace: ["memories", "user@x~+_-"] }).write("/a.md", "a");
    expect(await store.get(["memories", "user@x~+_-"], "/a.md")).not.toBeNull();
    const namespace = (rt: { threadId?: string } | undefined) => ["by-thread", rt?.threadId ?? "none"];
    await new StoreBackend({ ...runtime(store), threadId: "t1" }, { namespace }).write("/b.md", "b");
    expect(await store.get(["by-thread", "t1"], "/b.md")).not.toBeNull();
  });

  it.each([[[]], [["a/b"]], [["a", ""]], [["a b"]], [["ä"]]])("refuses namespace %j", async (namespace) => {
    const store = new InMemoryStore();
    expect(() => new StoreBackend({ store, namespace })).toThrow(ConfigurationError);
    const made = new StoreBackend({ store, namespace: () => namespace });
    await expect(made.write("/a.md", "a")).rejects.toThrow(ConfigurationError);
  });

  it("refuses a namespace that its store refuses", async () => {
    const backend = new StoreBackend({ store: new InMemoryStore(), namespace: ["with.period"] });
    await expect(backend.write("/a.md", "a")).rejects.toThrow(ConfigurationError);
  });

  it("does not see namespaces that start alike, nor foreign items", async () => {
    const store = new InMemoryStore();
    await store.put(["filesystem", "sub"], "/deeper.md", { content: "x", created_at: "", modified_at: "" });
    await store.put(["filesystem2"], "/other.md", { content: "x", created_at: "", modified_at: "" });
    await store.put(["filesystem"], "/number.md", { content: 7 });
    await store.put(["filesystem"], "settings", { colour: "blue" });
    const backend = new StoreBackend({ store });
    await backend.write("/own.md", "x");
    expect((await backend.glob("**")).files?.map(({ path }) => path)).toEqual(["/own.md"]);
    expect((await backend.read("/number.md")).code).toBe("not_found");
    // A value of another program is not replaced, nor is it deleted.
    for (const said of [await backend.write("/number.md", "x"), await backend.delete("/number.md")])
      expect(said.error).toMatch(/not a file|not found/);
    const uploaded = await backend.uploadFiles([["/number.md", Buffer.from("x")]]);
    expect(uploaded[0]?.error).toBeTruthy();
    expect((await store.get(["filesystem"], "/number.md"))?.value).toEqual({ content: 7 });
  });

  it("touches one item for an operation on one file", async () => {
    const store = new NotingStore();
    const backend = new StoreBackend({ store });
    await backend.write("/a.md", "a");
    await backend.read("/a.md");
    await backend.readRaw("/a.md");
    await backend.edit("/a.md", "a", "b");
    await backend.grep("b", "/a.md");
    await backend.ls("/a.md");
    await backend.downloadFiles(["/a.md"]);
    await backend.delete("/a.md");
    expect(store.operations.length).toBeGreaterThan(8);
    expect(store.operations.every((operation) => "key" in operation && operation.key === "/a.md")).toBe(true);
  });

  it("finds the same in a store that searches by itself as in one that is read whole", async () => {
    const [memory, sqlite] = [new InMemoryStore(), createStore(opened())];
    const backends = [memory, sqlite].map((store) => new StoreBackend({ store }));
    const utf16 = new Uint8Array(Buffer.from("\ufeffneedle in UTF-16\n", "utf16le"));
    for (const backend of backends) {
      await backend.write("/quoted.md", 'say "needle"\n\tor \\needle\\\n');
      await backend.write("/below/한국어.md", "바늘 needle 😀\n");
      await backend.write("/hay.md", "hay\n");
      await backend.uploadFiles([["/utf16.txt", utf16]]);
      await backend.uploadFiles([["/picture.png", new Uint8Array([0x89, 0x50, 0, 1, 2])]]);
    }
    for (const store of [memory, sqlite]) {
      await store.put(["filesystem"], "/lines.md", {
        content: ["a", "needle"],
        created_at: "",
        modified_at: "",
      });
      await store.put(["filesystem"], "/number.md", { content: 7, needle: "needle" });
    }
    const searches: [string, string?][] = [
      ["needle"],
      ['"needle"'],
      ["\\needle\\"],
      ["\tor"],
      ["바늘"],
      ["😀"],
      ["\ude00"],
      ["UTF-16"],
      ["mimeType"],
      ["base64"],
      ["*"],
      ["nothing"],
      ["needle", "/below"],
      ["nothing", "/below"],
      ["needle", "/missing"],
      ["needle", "/quoted.md"],
      ["nothing", "/quoted.md"],
    ];
    for (const search of searches) {
      const [expected, found] = await Promise.all(backends.map((backend) => backend.grep(...search)));
      expect({ search, ...found }).toEqual({ search, ...expected });
    }
    expect((await backends[1]?.grep("needle"))?.matches).toHaveLength(5);
    expect((await backends[1]?.grep("nothing", "/missing"))?.code).toBe("not_found");
  });

  it("refuses a memory over 1 MB with the store's own text, and leaves what was there", async () => {
    const memories = new StoreBackend({ store: createStore(opened()) });
    const tree = new CompositeBackend(StateBackend, { "/memories/": memories });
    await tree.write("/memories/a.md", "before\n");
    const large = `after\n${"x".repeat(1024 * 1024)}`;
    const refused = {
      code: "too_large",
      error: expect.stringMatching(
        /^'\/memories\/a\.md' is too large for a memory: it has [\d,]+ bytes, and a memory has at most 1 MB .* Split it into several, or keep it as a file outside the memories\.$/,
      ),
    };
    expect(await tree.write("/memories/a.md", large, { mode: "overwrite" })).toMatchObject(refused);
    expect(await tree.edit("/memories/a.md", "before", large)).toMatchObject(refused);
    expect((await tree.read("/memories/a.md")).content).toBe("before\n");
    expect((await tree.write("/memories/b.md", large)).code).toBe("too_large");
    expect((await tree.read("/memories/b.md")).code).toBe("not_found");
  });

  it("lists more files than one page holds", async () => {
    const store = new NotingStore();
    const backend = new StoreBackend({ store });
    for (let index = 0; index < 1201; index += 1) {
      await store.put(["filesystem"], `/n/${index}.md`, { content: "hit", created_at: "", modified_at: "" });
    }
    expect((await backend.ls("/n")).files).toHaveLength(1201);
    expect((await backend.grep("hit", "/", null, 2000)).matches).toHaveLength(1201);
    const limits = store.operations.flatMap((operation) => ("limit" in operation ? [operation.limit] : []));
    expect(Math.max(...limits.map(Number))).toBeLessThan(1201);
  });

  it("works on the store a running graph hands out", async () => {
    const store = new AsyncBatchedStore(new InMemoryStore());
    store.start();
    const backend = new StoreBackend({ store });
    await backend.write("/a.md", "a");
    expect((await backend.read("/a.md")).content).toBe("a");
    await store.stop();
  });

  it("keeps bytes in JSON", async () => {
    const store = new InMemoryStore();
    const backend = new StoreBackend({ store });
    const bytes = Uint8Array.from([0, 200, 255]);
    await backend.uploadFiles([["/a.txt", bytes]]);
    const item = await store.get(["filesystem"], "/a.txt");
    expect(JSON.parse(JSON.stringify(item?.value))).toEqual(item?.value);
    expect((await backend.downloadFiles(["/a.txt"]))[0]?.content).toEqual(bytes);
  });

  it("says when there is no store", async () => {
    expect(await new StoreBackend(runtime(undefined)).read("/a.md")).toEqual(errors.storeMissing());
    expect(await new StoreBackend().ls("/")).toEqual(errors.storeMissing());
  });

  it("gives a failing store a text without its details", async () => {
    class BrokenStore extends InMemoryStore {
      override batch(): Promise<never> {
        return Promise.reject(new Error("connect ECONNREFUSED postgres://user:password@host"));
      }
    }
    const result = await new StoreBackend({ store: new BrokenStore() }).read("/a.md");
    expect(result).toMatchObject({
      code: "backend_error",
      error: "'/a.md' could not be accessed: the store failed; try again",
    });
  });

  it("loses no change of another process, where the store compares and sets", async () => {
    const file = join(filesIn(), "store.db");
    const [ours, theirs] = [createStore(opened(file)), createStore(opened(file))];
    const backend = new StoreBackend({ store: new AsyncBatchedStore(ours) });
    await backend.write("/a.md", "one two");
    // Between our look and our put the other process makes its change, once.
    let isFirst = true;
    const putIf = ours.putIf.bind(ours);
    ours.putIf = async (...args) => {
      if (isFirst) {
        isFirst = false;
        await theirs.putIf(["filesystem"], "/a.md", { content: "one 2" }, await versionIn(theirs));
      }
      return putIf(...args);
    };
    expect((await backend.edit("/a.md", "one", "1")).error).toBeUndefined();
    expect((await backend.read("/a.md")).content).toBe("1 2");
    isFirst = true;
    const { version = "" } = await backend.read("/a.md");
    const bound = await backend.edit("/a.md", "1", "I", false, { expectedVersion: version });
    expect(bound).toEqual(errors.changedSinceRead("/a.md"));
  });
});

describe.each([
  { handed: "as it is", wrap: (store: SqliteStore) => store },
  { handed: "as a running graph hands it out", wrap: (store: SqliteStore) => new AsyncBatchedStore(store) },
])("StoreBackend on a store with ordered keys, $handed", ({ wrap }) => {
  const withSqlite = async (
    run: (backend: StoreBackend, read: () => string[], store: SqliteStore) => Promise<void>,
  ): Promise<void> => {
    const store = createStore(opened());
    const keys: string[] = [];
    const itemsBetween = store.itemsBetween.bind(store);
    store.itemsBetween = async (...args) => {
      const items = await itemsBetween(...args);
      keys.push(...items.map(({ key }) => key));
      return items;
    };
    store.search = () => Promise.reject(new Error("reads the whole namespace"));
    await run(new StoreBackend({ store: wrap(store) }), () => keys.splice(0), store);
  };
  const fill = async (store: SqliteStore, keys: string[]): Promise<void> => {
    const value = { content: "hit", created_at: "", modified_at: "" };
    await store.batch(keys.map((key) => ({ namespace: ["filesystem"], key, value })));
  };
  const numbered = (folder: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `${folder}/${index}.md`);

  it("lists a thousand folders in a few reads, whatever is first in each", () =>
    withSqlite(async (backend, _read, store) => {
      const folders = Array.from({ length: 1000 }, (_, index) => `/f${String(index).padStart(4, "0")}`);
      await fill(
        store,
        folders.flatMap((folder) => [`${folder}/b.md`, `${folder}/c.md`]),
      );
      // Values of other programs, one of them alone in its folder, and one that fills a turn of the event loop.
      for (const key of ["/f0003/a", "/f0500/a", "/f0500/b0", "/only/a"])
        await store.put(["filesystem"], key, { other: true });
      const long = { content: "x".repeat(600_000), created_at: "", modified_at: "" };
      await store.put(["filesystem"], "/f0007/a.md", long);
      let reads = 0;
      const itemsBetween = store.itemsBetween.bind(store);
      store.itemsBetween = (...args) => ((reads += 1), itemsBetween(...args));
      const { files = [] } = await backend.ls("/");
      expect(files.map((file) => file.path)).toEqual(folders.map((folder) => `${folder}/`));
      expect(reads).toBeLessThan(10);
    }));

  it("reads of other folders at most a few files to list one", () =>
    withSqlite(async (backend, read, store) => {
      const folders = ["/a", "/a/deep", "/a b", "/a0", "/b/c", "/b/c/d"];
      await fill(store, ["/z.md", "/é.md", "/😀.md", ...folders.flatMap((one) => numbered(one, 600))]);
      const paths = async (path: string) => (await backend.ls(path)).files?.map((file) => file.path);
      expect(await paths("/")).toEqual(["/a b/", "/a/", "/a0/", "/b/", "/z.md", "/é.md", "/😀.md"]);
      expect(read().length).toBeLessThan(60);
      expect(await paths("/b")).toEqual(["/b/c/"]);
      expect(read().length).toBeLessThan(20);
      expect(await paths("/a")).toEqual([...numbered("/a", 600), "/a/deep/"].sort());
      const looked = read();
      expect(looked.every((key) => key.startsWith("/a/"))).toBe(true);
      expect(looked.filter((key) => key.startsWith("/a/deep/")).length).toBeLessThan(300);
      expect((await backend.ls("/a/de")).code).toBe("not_found");
    }));

  it("searches and deletes one folder without the others", () =>
    withSqlite(async (backend, read, store) => {
      await fill(store, [...numbered("/a", 700), ...numbered("/a-z", 10), ...numbered("/b", 10)]);
      expect((await backend.grep("hit", "/a", null, 2000)).matches).toHaveLength(700);
      expect(new Set(read())).toEqual(new Set(numbered("/a", 700)));
      expect((await backend.glob("*.md", "/b")).files).toHaveLength(10);
      expect(read().sort()).toEqual(numbered("/b", 10).sort());
      await backend.delete("/b/3.md");
      expect(read()).toEqual([]);
      await backend.delete("/a");
      expect((await backend.glob("**", "/")).files).toHaveLength(19);
    }));

  it("passes over items that are no files", () =>
    withSqlite(async (backend, _read, store) => {
      await store.put(["filesystem"], "/a/settings", { colour: "blue" });
      await store.put(["filesystem"], "/b/0", { colour: "blue" });
      await fill(store, numbered("/b", 20));
      expect((await backend.ls("/")).files).toEqual([{ path: "/b/", is_dir: true }]);
      expect((await backend.ls("/a")).code).toBe("not_found");
    }));

  it("lists what a store without an order lists", () =>
    fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(
          fc.array(fc.constantFrom("a", "a ", "a-", "a0", "b", "é", "😀"), { minLength: 1, maxLength: 4 }),
          {
            maxLength: 60,
            selector: (names) => names.join("/"),
          },
        ),
        async (paths) =>
          withSqlite(async (backend, _read, store) => {
            const keys = paths.map((names) => `/${names.join("/")}`);
            const plain = new InMemoryStore();
            await fill(store, keys);
            const value = { content: "hit", created_at: "", modified_at: "" };
            for (const key of keys) await plain.put(["filesystem"], key, value);
            const other = new StoreBackend({ store: plain });
            for (const path of ["/", ...keys, ...keys.map((key) => key.replace(/\/[^/]*$/, "") || "/")]) {
              expect(await backend.ls(path)).toEqual(await other.ls(path));
              expect(await backend.glob("**", path)).toEqual(await other.glob("**", path));
              expect(await backend.grep("hit", path)).toEqual(await other.grep("hit", path));
            }
          }),
      ),
      attempts(30),
    ));
});

const versionIn = async (store: SqliteStore): Promise<string> =>
  (await store.getVersioned(["filesystem"], "/a.md"))?.version ?? "";
