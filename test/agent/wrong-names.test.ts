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
  it.each<[problem: string, make: () => unknown]>([
    ["it is called 'interruptOn' here", agent({ interrupt_on: { execute: true } })],
    ["createDeepAgent has no option 'system_prompt'; it is", agent({ system_prompt: "p" })],
    ["'subagents' here. createDeepAgent has no", agent({ sub_agents: [], bakend: 1 })],
    ["did you mean 'interruptOn'?", agent({ interuptOn: { execute: true } })],
    ["its options are model, fallbackModels", agent({ verbose: true })],
    ["it is called 'allowedDecisions' here", gated({ allowed_decisions: ["approve"] })],
    ["subagents[0] has no option", agent({ subagents: [{ ...worker, interrupt_on: {} }] })],
    [
      "it is called 'isRepeatable' here",
      agent({
        subagents: [{ name: "c", description: "d", runnable: createDeepAgent(), is_repeatable: true }],
      }),
    ],
    ["limits has no option 'max_iterations'; it is", agent({ limits: { max_iterations: 25 } })],
    ["limits has no", agent({ subagents: [{ ...worker, limits: { subagentDepth: 2 } }] })],
    ["it is called 'evictTokens' here", agent({ filesystem: { evict_tokens: 1 } })],
    ["'historyPathPrefix' here", agent({ summarization: { history_path_prefix: "/h" } })],
    ["generalPurpose has no option 'prompt'", agent({ generalPurpose: { prompt: "p" } })],
    ["it is called 'systemPrompt' here", agent({ delegation: { system_prompt: "p" } })],
    [
      "did you mean 'paths'?",
      agent({ permissions: [{ operations: ["read"], path: ["/**"], mode: "deny" }] }),
    ],
    ["called 'wrapToolCall'", agent({ middleware: [{ name: "m", wrap_tool_call: () => 1 }] })],
    ["called 'rootDir' here", () => new FilesystemBackend(untyped({ root_dir: "." }))],
    ["'maxOutputBytes' here", () => new LocalShellBackend(untyped({ max_output_bytes: 1 }))],
    ["StateBackend has no option 'format'", () => new StateBackend(untyped({ format: "v1" }))],
    ["it is called 'namespace' here", () => new StoreBackend(untyped({ name_space: ["a"] }))],
    ["'denyGlobs' here", () => new PolicyBackend(StateBackend, untyped({ deny_globs: ["*"] }))],
    ["did you mean 'clock'?", () => new OverlayBackend(StateBackend, untyped({ clok: 1 }))],
    ["no option 'shell'", () => new CompositeBackend(StateBackend, {}, untyped({ shell: "/w/" }))],
    ["S3Backend has no option 'bucket_name'", () => new S3Backend(untyped({ bucket_name: "b" }))],
    [
      "it is called 'connectionString' here",
      () => new PostgresBackend(untyped({ connection_string: "postgres://h" })),
    ],
    ["its options are synchronous", () => openDatabase(":memory:", untyped({ synchron: 1 }))],
    ["createStore has no option", () => createStore(openDatabase(":memory:"), untyped({ default_ttl: 1 }))],
  ])("are refused with the right name: %s", (problem, make) => {
    expect(make).toThrow(expect.objectContaining({ code: "UNKNOWN_OPTION" }) as Error);
    expect(make).toThrow(problem);
  });

  it.each<[problem: string, open: () => Promise<unknown>]>([
    ["called 'rootDir' here", () => createSandbox(untyped({ provider: "local", root_dir: "." }))],
    ["Docker has no option 'img'", () => createSandbox(untyped({ provider: "docker", img: "x" }))],
    ["did you mean 'app'?", () => createSandbox(untyped({ provider: "modal", apps: "x" }))],
    ["Runloop has no option 'image'", () => createSandbox(untyped({ provider: "runloop", image: "x" }))],
    ["called 'workdir' here", () => createSandbox(untyped({ provider: "daytona", work_dir: "/" }))],
    ["it is called 'rootDir' here", () => openBubblewrap(untyped({ root_dir: "/" }))],
    [
      "'readOnly' takes a list of objects { folder, at }; got a list with a text",
      () => openBubblewrap(untyped({ readOnly: ["/usr/share"] })),
    ],
    [
      "'readOnly' takes a list of objects { folder, at }; got a list with a plain object",
      () => openBubblewrap(untyped({ readOnly: [{ folder: "/usr/share" }] })),
    ],
    ["it is called 'sandboxId' here", () => openDocker(untyped({ sandbox_id: "x" }))],
    ["mean 'folders'?", () => loadSubagents(untyped({ backend: StateBackend, folder: [] }))],
  ])("are refused before anything is opened: %s", async (problem, open) => {
    await expect(open()).rejects.toThrow(problem);
  });
});

describe("values of another kind", () => {
  it.each<[problem: string, make: () => unknown]>([
    ["'interruptOn' takes a plain object; got true", agent({ interruptOn: true })],
    ["'interruptOn' takes a plain object; got a list", agent({ interruptOn: ["execute"] })],
    ["got an object of class Map", agent({ interruptOn: new Map([["execute", true]]) })],
    ["a plain object or false", agent({ subagents: [{ ...worker, interruptOn: true }] })],
    ["createDeepAgent: 'tools' takes a list; got a plain object", agent({ tools: {} })],
    ["'model' takes a model, or a text such as 'anthropic:NAME'; got a number", agent({ model: 5 })],
    ["'model' takes a model, or a text such as", agent({ subagents: [{ ...worker, model: {} }] })],
    ["'responseFormat' takes a schema, or a list of them; got a text", agent({ responseFormat: "json" })],
    ["'checkpointer' takes a checkpointer, or true or false; got a", agent({ checkpointer: "memory" })],
    ["'store' takes a store, such as `new InMemoryStore()`; got a plain", agent({ store: {} })],
    ["`backend` is not a backend; pass one, such as", agent({ backend: "./work" })],
    [
      "`backend` has no method `glob`, `edit`; a backend needs ls, read, readRaw, grep, glob, write, edit.",
      agent({
        backend: { ls: () => 1, read: () => 1, readRaw: () => 1, write: () => 1, edit: 1, grep: () => 1 },
      }),
    ],
    [
      "`backend` has no method `grepRaw`; a backend needs",
      agent({
        backend: { lsInfo: () => 1, read: () => 1, write: () => 1, edit: () => 1, globInfo: () => 1 },
      }),
    ],
    ["`invoke`", agent({ subagents: [{ name: "r", description: "d", runnable: {} }] })],
    [
      "'env' takes a plain object of texts; got a plain object with a number",
      () => new LocalShellBackend(untyped({ env: { PORT: 80 } })),
    ],
    [
      "'credentials' takes an object { accessKeyId, secretAccessKey }; got a text",
      () => new S3Backend(untyped({ bucket: "files", credentials: "id:secret" })),
    ],
    [
      "'prices' takes an object with { input, output } for each model; got a plain object with a number",
      agent({ limits: { costUsd: 1, prices: { "gpt-5.4": 2 } } }),
    ],
    ["createDeepAgent takes a plain object of options; got a text", agent("claude")],
    ["needs operations (read, write)", agent({ permissions: [{ operations: ["write"], mode: "deny" }] })],
    [
      "The first argument of CompositeBackend (its routes are the second) is not a backend",
      () => new CompositeBackend(untyped({ default: new StateBackend(), routes: {} })),
    ],
    ["The route '/a/' is not a backend", () => new CompositeBackend(StateBackend, { "/a/": untyped("./a") })],
  ])("are refused: %s", (problem, make) => {
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
