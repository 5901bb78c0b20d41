import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { InMemoryStore } from "@langchain/langgraph";
import { describe, expect, onTestFinished, test } from "vitest";
import { validatePath } from "../../src/backends/paths.ts";
import {
  type Backend,
  BaseSandbox,
  CompositeBackend,
  createDeepAgent,
  createSandbox,
  FilesystemBackend,
  PolicyBackend,
  PostgresBackend,
  S3Backend,
  SENSITIVE_GLOBS,
  StateBackend,
  StoreBackend,
} from "../../src/index.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { BUCKET, startS3rver } from "../support/s3-servers.ts";
import { scriptedSteps } from "../support/scripted-model.ts";
import { folder, results, said } from "./support.ts";

/** The examples with which backends are described to programmers, in this library's words. */
type Write = Backend["write"];
type Edit = Backend["edit"];

const write = (path: string, content = "가\n") => ({
  toolCalls: [{ name: "write_file", args: { file_path: path, content } }],
});

/** Writes a file by an agent's tool; gives its state and what the tool answered. */
async function written(path: string, params: Parameters<typeof createDeepAgent>[0]) {
  const model = scriptedSteps([write(path), { text: "끝" }]);
  const state = await createDeepAgent({ ...params, model }).invoke(said("써줘"));
  return { files: Object.keys(state.files ?? {}), told: results(state.messages)[0] ?? "" };
}

describe("quick start", () => {
  test("the default, and a function that makes a StateBackend, keep files in the thread's state", async () => {
    expect((await written("/notes.txt", {})).files).toEqual(["/notes.txt"]);
    const backend = (runtime: ConstructorParameters<typeof StateBackend>[0]) => new StateBackend(runtime);
    expect((await written("/notes.txt", { backend })).files).toEqual(["/notes.txt"]);
  });

  test("FilesystemBackend writes to the disk", async () => {
    const rootDir = folder();
    const { files } = await written("/src/a.txt", {
      backend: new FilesystemBackend({ rootDir, virtualMode: true }),
    });
    expect(files).toEqual([]);
    expect(readFileSync(join(rootDir, "src/a.txt"), "utf8")).toBe("가\n");
  });

  test("StoreBackend gets the agent's store", async () => {
    const store = new InMemoryStore();
    await written("/facts.txt", { backend: (runtime) => new StoreBackend(runtime), store });
    expect(await store.search([])).toMatchObject([{ key: "/facts.txt" }]);
  });

  test.each(["made for each call", "made once"])("CompositeBackend, %s, routes a path", async (form) => {
    const rootDir = folder();
    const store = new InMemoryStore();
    const workspace = new FilesystemBackend({ rootDir, virtualMode: true });
    const backend =
      form === "made once"
        ? new CompositeBackend(StateBackend, { "/memories/": StoreBackend, "/workspace/": workspace })
        : (runtime: ConstructorParameters<typeof StateBackend>[0]) =>
            new CompositeBackend(new StateBackend(runtime), {
              "/memories/": new StoreBackend(runtime),
              "/workspace/": workspace,
            });
    expect((await written("/notes.txt", { backend, store })).files).toEqual(["/notes.txt"]);
    expect((await written("/memories/facts.txt", { backend, store })).files).toEqual([]);
    expect((await written("/workspace/code.py", { backend, store })).files).toEqual([]);
    expect(await store.search([])).toMatchObject([{ key: "/facts.txt" }]);
    expect(readFileSync(join(rootDir, "code.py"), "utf8")).toBe("가\n");
  });
});

test("the longest prefix of a path decides, and results have the prefix again", async () => {
  const outer = new FilesystemBackend({ rootDir: folder(), virtualMode: true });
  const inner = new FilesystemBackend({ rootDir: folder(), virtualMode: true });
  const backend = new CompositeBackend(outer, { "/a/": outer, "/a/b/": inner });
  await backend.write("/a/b/note.txt", "안쪽");
  expect(await inner.read("/note.txt")).toMatchObject({ content: "안쪽" });
  expect(await backend.ls("/a/b/")).toMatchObject({ files: [{ path: "/a/b/note.txt" }] });
  expect(await backend.grep("안쪽", "/")).toMatchObject({ matches: [{ path: "/a/b/note.txt", line: 1 }] });
});

describe("a virtual file system of other storage", () => {
  /** Works on a file below the mount, as any file; gives what a second conversation reads there. */
  async function usedBy(archive: Backend): Promise<string> {
    const backend = new CompositeBackend(StateBackend, { "/archive/": archive });
    const path = "/archive/notes/todo.md";
    const model = scriptedSteps([
      write(path, "- [ ] 시작\n"),
      { toolCalls: [{ name: "edit_file", args: { file_path: path, old_string: "[ ]", new_string: "[x]" } }] },
      { toolCalls: [{ name: "grep", args: { pattern: "[x]", path: "/archive" } }] },
      { text: "끝" },
      { toolCalls: [{ name: "read_file", args: { file_path: path } }] },
      { text: "읽음" },
    ]);
    const agent = createDeepAgent({ model, backend });
    const first = await agent.invoke(said("써줘"));
    expect({ files: first.files ?? {}, found: results(first.messages)[2] }).toEqual({
      files: {},
      found: expect.stringContaining(path),
    });
    return results((await agent.invoke(said("읽어줘"))).messages)[0] ?? "";
  }

  test("S3Backend: objects below a prefix of a bucket", async () => {
    const { endpoint, credentials, stop } = await startS3rver();
    const place = { bucket: BUCKET, prefix: "team", endpoint, credentials, conditionalWrites: false };
    const archive = new S3Backend(place);
    onTestFinished(async () => {
      await archive.close();
      await stop();
    });
    expect(await usedBy(archive)).toContain("- [x] 시작");
  });

  test("PostgresBackend: rows of a table", { tags: "postgres" }, async () => {
    const postgres = await startPostgres();
    const archive = new PostgresBackend({ connectionString: postgres.url });
    onTestFinished(async () => {
      await archive.close();
      await postgres.stop();
    });
    expect(await usedBy(archive)).toContain("- [x] 시작");
  });
});

describe("policies", () => {
  class GuardedBackend extends FilesystemBackend {
    readonly #denied: string[];
    constructor({
      denyPrefixes,
      ...options
    }: {
      denyPrefixes: string[];
      rootDir: string;
      virtualMode: boolean;
    }) {
      super(options);
      this.#denied = denyPrefixes.map((prefix) => (prefix.endsWith("/") ? prefix : `${prefix}/`));
    }
    override async write(...[path, ...rest]: Parameters<Write>): Promise<Awaited<ReturnType<Write>>> {
      if (this.#isDenied(path)) return { error: `Writes are not allowed under ${path}` };
      return super.write(path, ...rest);
    }
    override async edit(...[path, ...rest]: Parameters<Edit>): Promise<Awaited<ReturnType<Edit>>> {
      if (this.#isDenied(path)) return { error: `Edits are not allowed under ${path}` };
      return super.edit(path, ...rest);
    }
    #isDenied(path: string): boolean {
      return this.#denied.some((prefix) => path.startsWith(prefix));
    }
  }

  test("a subclass of FilesystemBackend refuses writes and edits, and the model is told", async () => {
    const rootDir = folder();
    const backend = new GuardedBackend({ rootDir, virtualMode: true, denyPrefixes: ["/secret"] });
    const { told } = await written("/secret/a.txt", { backend });
    expect(told).toBe("Error: Writes are not allowed under /secret/a.txt");
    expect(await backend.edit("/secret/a.txt", "a", "b")).toEqual({
      error: "Edits are not allowed under /secret/a.txt",
    });
    expect(await backend.write("/open/a.txt", "가")).toMatchObject({ path: "/open/a.txt" });
  });

  test("a wrapper refuses for any backend", async () => {
    const inner = new FilesystemBackend({ rootDir: folder(), virtualMode: true });
    await inner.write("/keep/a.txt", "가");
    const backend = new PolicyBackend(inner, { denyPrefixes: ["/keep"] });
    expect((await backend.write("/keep/b.txt", "나")).error).toContain(
      "Writes are not allowed under /keep/b.txt",
    );
    expect((await backend.edit("/keep/a.txt", "가", "나")).error).toContain("Edits are not allowed");
    expect(await backend.read("/keep/a.txt")).toMatchObject({ content: "가" });
    expect(await backend.write("/else.txt", "나")).toMatchObject({ path: "/else.txt" });
  });

  test("sensitive paths cannot be seen", async () => {
    const rootDir = folder();
    mkdirSync(join(rootDir, "secrets"));
    for (const name of ["secrets/key", ".env", "open.txt"]) writeFileSync(join(rootDir, name), "가");
    const inner = new FilesystemBackend({ rootDir, virtualMode: true });
    const backend = new PolicyBackend(inner, { denyGlobs: SENSITIVE_GLOBS });
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toEqual(["/open.txt"]);
    expect((await backend.read("/.env")).error).toContain("Access to sensitive paths is forbidden");
  });
});

test.each([
  ["foo/bar", undefined, "/foo/bar"],
  ["/./foo//bar", undefined, "/foo/bar"],
  ["../etc/passwd", undefined, /Path traversal not allowed/],
  ["~/x", undefined, /Path traversal not allowed/],
  ["C:\\Users\\file", undefined, /Windows absolute paths are not supported/],
  ["/data/f.txt", ["/data/"], "/data/f.txt"],
  ["/etc/f.txt", ["/data/"], /must start with one of/],
])("the path %s with the prefixes %s", (path, allowedPrefixes, expected) => {
  const result = validatePath(path, allowedPrefixes === undefined ? {} : { allowedPrefixes });
  if (typeof expected === "string") expect(result).toMatchObject({ ok: true, path: expected });
  else expect(JSON.stringify(result)).toMatch(expected);
});

describe("what to know of files", () => {
  const rooted = () => {
    const rootDir = folder();
    return { rootDir, backend: new FilesystemBackend({ rootDir, virtualMode: true }) };
  };

  test("a link that leads out of the root is not followed", async () => {
    const { rootDir, backend } = rooted();
    symlinkSync("/etc/hostname", join(rootDir, "link"));
    const { error, content } = await backend.read("/link");
    expect({ content, told: error !== undefined }).toEqual({ content: undefined, told: true });
  });

  test("text in an older encoding is read, and an edit keeps all other bytes", async () => {
    const { rootDir, backend } = rooted();
    const file = join(rootDir, "a.txt");
    writeFileSync(file, Buffer.from("caf\u00e9\n", "latin1"));
    expect(await backend.read("/a.txt")).toMatchObject({ content: "café\n" });
    expect((await backend.edit("/a.txt", "caf", "tea")).error).toBeUndefined();
    expect(readFileSync(file, "latin1")).toBe("tea\u00e9\n");
  });

  test("an edit of a text that appears twice needs replaceAll", async () => {
    const { backend } = rooted();
    await backend.write("/file.txt", "hello world hello");
    const refused = await backend.edit("/file.txt", "hello", "hi", false);
    expect(refused.error).toMatch(/'hello' appears 2 times in file/);
    expect(await backend.edit("/file.txt", "hello", "hi", true)).toMatchObject({ occurrences: 2 });
  });

  test("a large file is read in pages", async () => {
    const { backend } = rooted();
    await backend.write("/large_file.txt", Array.from({ length: 250 }, (_, line) => `${line}\n`).join(""));
    expect(await backend.read("/large_file.txt", 0, 100)).toMatchObject({ endLine: 100, nextOffset: 100 });
    const { content } = await backend.read("/large_file.txt", 100, 100);
    expect(String(content)).toMatch(/^100\n[^]*\n199\n$/);
  });

  test("of two that make the same file one succeeds", async () => {
    const { backend } = rooted();
    const made = await Promise.all([backend.write("/a.txt", "A"), backend.write("/a.txt", "B")]);
    expect(made.map(({ error }) => error === undefined).toSorted()).toEqual([false, true]);
  });

  test("failures are values", async () => {
    const { backend } = rooted();
    expect((await backend.read("/file.txt")).error).toContain("'/file.txt' not found");
    expect(await backend.grep("(", "/", null, null, { regex: true })).toMatchObject({
      code: "invalid_pattern",
    });
    expect(await backend.grep("pattern", "/")).toMatchObject({ matches: [] });
  });
});

describe("sandboxes", () => {
  test("one of a provider is prepared by its script, and runs commands", async () => {
    const setupScriptPath = join(folder(), "setup.sh");
    writeFileSync(setupScriptPath, "echo prepared > ready.txt");
    const rootDir = folder();
    const sandbox = await createSandbox({ provider: "local", rootDir, virtualMode: true, setupScriptPath });
    onTestFinished(() => sandbox.close());
    expect(await sandbox.execute("cat ready.txt; exit 3")).toMatchObject({
      output: "prepared\n",
      exitCode: 3,
    });
    expect(sandbox.id).not.toBe("");
  });

  test("one with nothing but execute has all file tools, whatever names and contents hold", async () => {
    const rootDir = folder();
    const shell = await createSandbox({ provider: "local", rootDir, virtualMode: true });
    onTestFinished(() => shell.close());
    class Own extends BaseSandbox {
      readonly id = "own";
      override execute = shell.execute.bind(shell);
    }
    const sandbox = new Own({ root: rootDir }, "process");
    const [path, content] = ["/a'; touch pwned; echo '.txt", `$(touch pwned) "'\n`];
    expect(await sandbox.write(path, content)).toMatchObject({ path });
    expect(await sandbox.read(path)).toMatchObject({ content });
    expect(await sandbox.grep("pwned", "/")).toMatchObject({ matches: [{ path, line: 1 }] });
    expect((await sandbox.ls("/")).files?.map((file) => file.path)).toEqual([path]);
  });
});
