import { describe, expect, it } from "vitest";
import {
  BaseSandbox,
  CompositeBackend,
  createDeepAgent,
  createSandbox,
  createStore,
  FilesystemBackend,
  loadSubagents,
  LocalShellBackend,
  openBubblewrap,
  openDatabase,
  openDocker,
  OverlayBackend,
  PolicyBackend,
  PostgresBackend,
  S3Backend,
  StateBackend,
  StoreBackend,
} from "../../src/index.ts";

/** What callers without types pass. */
const untyped = (value: unknown): never => value as never;
const agent = (params: unknown) => () => createDeepAgent(untyped(params));
const worker = { name: "w", description: "d", systemPrompt: "p" };
const gated = (gate: unknown) => agent({ interruptOn: { write_file: gate }, checkpointer: true });

describe("names of options that do not exist", () => {
  it.each<[string, () => unknown, string]>([
    ["Python's", agent({ interrupt_on: { execute: true } }), "it is called 'interruptOn' here"],
    [
      "Python's prompt",
      agent({ system_prompt: "p" }),
      "createDeepAgent has no option 'system_prompt'; it is",
    ],
    ["all that are wrong", agent({ sub_agents: [], bakend: 1 }), "'subagents' here. createDeepAgent has no"],
    ["a misspelt one", agent({ interuptOn: { execute: true } }), "did you mean 'interruptOn'?"],
    ["one of another library", agent({ verbose: true }), "its options are model, fallbackModels"],
    ["of a gate", gated({ allowed_decisions: ["approve"] }), "it is called 'allowedDecisions' here"],
    ["of a subagent", agent({ subagents: [{ ...worker, interrupt_on: {} }] }), "subagents[0] has no option"],
    [
      "of a compiled subagent",
      agent({
        subagents: [{ name: "c", description: "d", runnable: createDeepAgent(), is_repeatable: true }],
      }),
      "it is called 'isRepeatable' here",
    ],
    ["of limits", agent({ limits: { max_iterations: 25 } }), "limits has no option 'max_iterations'; it is"],
    [
      "of a subagent's limits",
      agent({ subagents: [{ ...worker, limits: { subagentDepth: 2 } }] }),
      "limits has no",
    ],
    ["of the file tools", agent({ filesystem: { evict_tokens: 1 } }), "it is called 'evictTokens' here"],
    ["of summaries", agent({ summarization: { history_path_prefix: "/h" } }), "'historyPathPrefix' here"],
    [
      "of the general agent",
      agent({ generalPurpose: { prompt: "p" } }),
      "generalPurpose has no option 'prompt'",
    ],
    ["of delegation", agent({ delegation: { system_prompt: "p" } }), "it is called 'systemPrompt' here"],
    [
      "of a permission",
      agent({ permissions: [{ operations: ["read"], path: ["/**"], mode: "deny" }] }),
      "did you mean 'paths'?",
    ],
    [
      "of a middleware",
      agent({ middleware: [{ name: "m", wrap_tool_call: () => 1 }] }),
      "called 'wrapToolCall'",
    ],
    ["of files on disk", () => new FilesystemBackend(untyped({ root_dir: "." })), "called 'rootDir' here"],
    [
      "of the local shell",
      () => new LocalShellBackend(untyped({ max_output_bytes: 1 })),
      "'maxOutputBytes' here",
    ],
    [
      "of thread files",
      () => new StateBackend(untyped({ format: "v1" })),
      "StateBackend has no option 'format'",
    ],
    ["of a store", () => new StoreBackend(untyped({ name_space: ["a"] })), "it is called 'namespace' here"],
    [
      "of a policy",
      () => new PolicyBackend(StateBackend, untyped({ deny_globs: ["*"] })),
      "'denyGlobs' here",
    ],
    ["of an overlay", () => new OverlayBackend(StateBackend, untyped({ clok: 1 })), "did you mean 'clock'?"],
    [
      "of a tree",
      () => new CompositeBackend(StateBackend, {}, untyped({ shell: "/w/" })),
      "no option 'shell'",
    ],
    [
      "of a folder in S3",
      () => new S3Backend(untyped({ bucket_name: "b" })),
      "S3Backend has no option 'bucket_name'",
    ],
    [
      "of files in Postgres",
      () => new PostgresBackend(untyped({ connection_string: "postgres://h" })),
      "it is called 'connectionString' here",
    ],
    [
      "of a database",
      () => openDatabase(":memory:", untyped({ synchron: 1 })),
      "its options are synchronous",
    ],
    [
      "of a store",
      () => createStore(openDatabase(":memory:"), untyped({ default_ttl: 1 })),
      "createStore has no option",
    ],
  ])("are refused with the right name: %s", (_what, make, problem) => {
    expect(make).toThrow(expect.objectContaining({ code: "UNKNOWN_OPTION" }) as Error);
    expect(make).toThrow(problem);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ["local", () => createSandbox(untyped({ provider: "local", root_dir: "." })), "called 'rootDir' here"],
    ["docker", () => createSandbox(untyped({ provider: "docker", img: "x" })), "Docker has no option 'img'"],
    ["modal", () => createSandbox(untyped({ provider: "modal", apps: "x" })), "did you mean 'app'?"],
    [
      "runloop",
      () => createSandbox(untyped({ provider: "runloop", image: "x" })),
      "Runloop has no option 'image'",
    ],
    [
      "daytona",
      () => createSandbox(untyped({ provider: "daytona", work_dir: "/" })),
      "called 'workdir' here",
    ],
    ["bubblewrap", () => openBubblewrap(untyped({ root_dir: "/" })), "it is called 'rootDir' here"],
    [
      "read-only folders as texts",
      () => openBubblewrap(untyped({ readOnly: ["/usr/share"] })),
      "'readOnly' takes a list of objects { folder, at }; got a list with a text",
    ],
    [
      "a read-only folder without its place",
      () => openBubblewrap(untyped({ readOnly: [{ folder: "/usr/share" }] })),
      "'readOnly' takes a list of objects { folder, at }; got a list with a plain object",
    ],
    ["openDocker", () => openDocker(untyped({ sandbox_id: "x" })), "it is called 'sandboxId' here"],
    [
      "files of agents",
      () => loadSubagents(untyped({ backend: StateBackend, folder: [] })),
      "mean 'folders'?",
    ],
  ])("are refused before anything is opened: %s", async (_what, open, problem) => {
    await expect(open()).rejects.toThrow(problem);
  });
});

describe("values of another kind", () => {
  it.each<[string, () => unknown, string]>([
    ["gates as a switch", agent({ interruptOn: true }), "'interruptOn' takes a plain object; got true"],
    [
      "gates as a list",
      agent({ interruptOn: ["execute"] }),
      "'interruptOn' takes a plain object; got a list",
    ],
    ["gates as a map", agent({ interruptOn: new Map([["execute", true]]) }), "got an object of class Map"],
    [
      "a subagent's gates",
      agent({ subagents: [{ ...worker, interruptOn: true }] }),
      "a plain object or false",
    ],
    ["one tool", agent({ tools: {} }), "createDeepAgent: 'tools' takes a list; got a plain object"],
    ["a folder as a backend", agent({ backend: "./work" }), "`backend` is not a backend; pass one, such as"],
    [
      "a backend without all methods",
      agent({
        backend: { ls: () => 1, read: () => 1, readRaw: () => 1, write: () => 1, edit: 1, grep: () => 1 },
      }),
      "`backend` has no method `glob`, `edit`; a backend needs ls, read, readRaw, grep, glob, write, edit.",
    ],
    [
      "an older backend without all methods",
      agent({
        backend: { lsInfo: () => 1, read: () => 1, write: () => 1, edit: () => 1, globInfo: () => 1 },
      }),
      "`backend` has no method `grepRaw`; a backend needs",
    ],
    [
      "a runnable that is none",
      agent({ subagents: [{ name: "r", description: "d", runnable: {} }] }),
      "`invoke`",
    ],
    [
      "an environment of numbers",
      () => new LocalShellBackend(untyped({ env: { PORT: 80 } })),
      "'env' takes a plain object of texts; got a plain object with a number",
    ],
    [
      "keys as a text",
      () => new S3Backend(untyped({ bucket: "files", credentials: "id:secret" })),
      "'credentials' takes an object { accessKeyId, secretAccessKey }; got a text",
    ],
    [
      "one price for all",
      agent({ limits: { costUsd: 1, prices: { "gpt-5.4": 2 } } }),
      "'prices' takes an object with { input, output } for each model; got a plain object with a number",
    ],
    ["no object at all", agent("claude"), "createDeepAgent takes a plain object of options; got a text"],
    [
      "a rule without paths",
      agent({ permissions: [{ operations: ["write"], mode: "deny" }] }),
      "needs operations (read, write)",
    ],
    [
      "a tree of keywords",
      () => new CompositeBackend(untyped({ default: new StateBackend(), routes: {} })),
      "The first argument of CompositeBackend (its routes are the second) is not a backend",
    ],
    [
      "a route",
      () => new CompositeBackend(StateBackend, { "/a/": untyped("./a") }),
      "The route '/a/' is not a backend",
    ],
  ])("are refused: %s", (_what, make, problem) => {
    expect(make).toThrow(problem);
  });

  it("are not shown, because they may be secrets", () => {
    expect(() => new LocalShellBackend(untyped({ env: "KEY=geheim" }))).toThrow(/^((?!geheim).)*$/);
  });

  it("say which providers of sandboxes there are", async () => {
    await expect(createSandbox(untyped({ provider: "e2b" }))).rejects.toMatchObject({
      code: "UNKNOWN_PROVIDER",
      message: expect.stringContaining("or local, bubblewrap, modal, runloop or daytona") as string,
    });
  });
});

describe("null", () => {
  it("counts as left out", async () => {
    const names =
      "tools subagents middleware systemPrompt checkpointer store backend interruptOn responseFormat contextSchema memory skills permissions name cache limits";
    const nothing = Object.fromEntries(names.split(" ").map((name) => [name, null]));
    const made = createDeepAgent(untyped({ model: "offline", ...nothing }));
    const { messages } = await made.invoke({ messages: [{ role: "user", content: "hello" }] });
    expect(messages.length).toBeGreaterThan(1);
    expect(createDeepAgent(untyped(null)).subagentNames).toEqual(["general-purpose"]);
    expect(new FilesystemBackend(untyped({ rootDir: null })).capabilities.paths).toBe("real");
    expect(new StateBackend(untyped(null))).toBeInstanceOf(StateBackend);
  });

  it("is no gate, because that would be lost", () => {
    expect(agent({ interruptOn: { execute: null } })).toThrow("interruptOn has null for 'execute'");
  });
});

describe("a sandbox of one's own", () => {
  class Shell extends BaseSandbox {
    readonly id = "shell";
    execute(): { output: string; exitCode: number; truncated: boolean } {
      return { output: "", exitCode: 0, truncated: false };
    }
  }

  it("needs no arguments", () => {
    expect(new Shell().capabilities).toMatchObject({ isolation: "remote", writeMode: true });
  });

  it("is a class of its own", () => {
    const Bare = BaseSandbox as unknown as new () => unknown; // the compiler knows that it is abstract
    expect(() => new Bare()).toThrow("extend it with `id` and `execute`");
  });
});
