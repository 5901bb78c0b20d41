import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import table from "../../src/config/server-entries.json" with { type: "json" };
import { parseJson, loadConfig } from "../../src/config/load.ts";
import { findServers, mcpServersSchema } from "../../src/config/mcp-servers.ts";
import { filesIn } from "../support/files-in.ts";

const read = (entry: unknown) => Object.values(mcpServersSchema.parse({ one: entry }))[0];
const local = { command: "npx" };
const remote = { url: "https://example.org/mcp" };

/** For each key of the table: a value of it, with what goes beside it, and what it is read as. */
const KEYS: Record<keyof typeof table.keys, [value: unknown, beside: object, readAs: object]> = {
  type: ["stdio", local, { command: "npx" }],
  command: [["npx", "-y"], { args: [1] }, { command: "npx", args: ["-y", "1"] }],
  args: [["--port", 3000], local, { args: ["--port", "3000"] }],
  env: [{ PORT: 3000, ON: true, NONE: null }, local, { env: { PORT: "3000", ON: "true" } }],
  variables: [["A"], { ...local, env: { B: "b" } }, { env: { A: "${A:-}", B: "b" } }],
  envFile: [".env", local, { envFile: ".env" }],
  cwd: ["./server", local, { cwd: "./server" }],
  url: [remote.url, { args: [] }, remote],
  headers: [{ A: "b" }, remote, { headers: { A: "b" } }],
  headerVariables: [{ A: "B" }, remote, { headers: { A: "${B:-}" } }],
  bearerVariable: ["T", remote, { headers: { Authorization: "Bearer ${T}" } }],
  oauth: [{ enabled: true, scopes: ["a", "b"] }, remote, { oauth: { scope: "a b" } }],
  clientId: ["id", remote, { oauth: { clientId: "id" } }],
  clientSecret: ["hidden", remote, { oauth: { clientSecret: "hidden" } }],
  scopes: [["a"], remote, { oauth: { scope: "a" } }],
  approve: ["all", local, { approve: "all" }],
  approvalMode: ["prompt", local, { approve: "all" }],
  trust: [true, local, { approve: "none" }],
  alwaysAllow: [["a"], local, { alwaysAllow: ["a"] }],
  tools: [["a"], local, { tools: ["a"] }],
  disabledTools: [["a"], local, { disabledTools: ["a"] }],
  disabled: [true, local, { disabled: true }],
  enabled: [false, local, { disabled: true }],
  timeout: ["30", local, { timeout: 30 }],
  timeoutSeconds: [7200, local, { timeout: 7200 }],
};

describe("each row of the table", () => {
  test.each(
    Object.entries(KEYS).flatMap(([key, facts]) =>
      table.keys[key as keyof typeof table.keys].names.map((name) => [name, ...facts] as const),
    ),
  )("%s", (name, value, beside, readAs) => {
    const found = read({ ...beside, [name]: value });
    expect(found).toMatchObject(readAs);
    expect(found).not.toHaveProperty("problem");
  });

  test.each(Object.entries(table.types))("the type %s", (word, type) => {
    const found = read({ type: word, ...(type === "stdio" ? local : remote) });
    expect(found?.problem).toBeUndefined();
    expect("url" in found! && found.isOlder).toBe(
      type === "sse" ? true : type === "http" ? undefined : false,
    );
  });

  test.each(Object.keys(table.wrappers))("servers under %s, and without it", (wrapper) => {
    expect(findServers({ [wrapper]: { a: local } })).toEqual({ a: local });
    expect(findServers({ [wrapper]: [{ name: "a", ...local }] })).toEqual({ a: { name: "a", ...local } });
    expect(Object.keys(mcpServersSchema.parse({ [wrapper]: { a: local, b: remote } }))).toEqual(["a", "b"]);
    expect(findServers({ a: local })).toEqual({ a: local });
    expect(findServers({ a: local, limit: 1 })).toBeUndefined();
  });

  test.each(Object.entries(table.left))("%s changes nothing", (key, reason) => {
    const { notes = [], ...found } = read({ ...remote, [key]: "x" })!;
    expect(found).toEqual({ ...read(remote)!, notes: undefined });
    expect(notes).toEqual(reason === "" ? [] : [`Left out of its entry: ${key} (${reason}).`]);
  });
});

test.each([
  ["a private key", { ...local, _comment: "x", "x-y": 1, $z: 1 }, []],
  ["an unknown key", { ...local, colour: "red" }, ["Left out of its entry: colour."]],
  [
    "keys of the other kind",
    { ...local, type: "stdio", url: "https://a.b", headers: { A: "x" } },
    ["Left out of its entry: url (not for this kind of server), headers (not for this kind of server)."],
  ],
  [
    "two names of one thing",
    { ...local, tools: ["a"], includeTools: ["b"] },
    ["Left out of its entry: includeTools."],
  ],
  ["milliseconds", { ...local, timeout: 30000 }, ["Its timeout of 30000 is read as milliseconds."]],
  ["all tools", { ...local, tools: ["*"] }, []],
  [
    "a tool with a rule",
    { ...local, tools: { a: { approval_mode: "prompt" } } },
    ["All of its calls need approval, as its entry says of some."],
  ],
])("%s is told in at most one line", (_, entry, notes) => {
  expect(read(entry)).toMatchObject({ notes });
  expect(read(entry)).not.toHaveProperty("problem");
});

test("a timeout in milliseconds, all tools and a log-in that is off", () => {
  expect(read({ ...local, timeout: 30_000 })).toMatchObject({ timeout: 30 });
  expect(read({ ...local, timeout: 3600 })).toMatchObject({ timeout: 3600 });
  expect(read({ ...local, tools: ["*"] })?.tools).toBeUndefined();
  expect(read({ ...remote, oauth: false })).toMatchObject({ noLogin: true });
  expect(read({ ...remote, oauth: { redirectUri: "http://localhost:4711/cb" } })).toMatchObject({
    oauth: { callbackPort: 4711, callbackHost: "localhost" },
  });
  expect(read({ ...local, tools: { a: { approval_mode: "approve" }, b: {} } })).toMatchObject({
    approve: "writes",
    alwaysAllow: ["a"],
  });
});

test.each([
  ["nothing", {}, "it needs either a command or a url"],
  ["both", { ...local, ...remote }, "it needs either a command or a url"],
  ["a text", "npx", "must be an object"],
  ["another transport", { type: "ws", url: "wss://a.b" }, "type must be stdio, http or sse"],
  ["another scheme", { url: "unix:///x" }, "url must be an http or https address"],
  ["a type of the other kind", { ...remote, type: "stdio" }, "it has type stdio"],
  ["tools that are no list", { ...local, tools: 5 }, "tools must be a list, not a number"],
  ["tools that are no names", { ...local, disabledTools: [{}] }, "disabledTools.0 must be a text"],
  ["disabled that says neither", { ...local, disabled: "maybe" }, "disabled must be true or false"],
  ["a time that is none", { ...local, timeout: 0 }, "timeout must be at least 1"],
  ["an approval that is none", { ...local, approve: "some" }, "approve must be writes, all or none"],
  ["a NUL character", { ...local, args: ["a\0b"] }, "NUL"],
  ["a huge entry", { ...local, args: [Array(9)], env: { A: "x".repeat(900_000) } }, "args.0 must be a text"],
])("%s leaves the entry out, by its problem", (_, entry, problem) => {
  expect(read(entry)?.problem).toContain(problem);
  expect(read(entry)?.problem?.length).toBeLessThan(400);
});

describe("names", () => {
  const names = (given: string[]) =>
    Object.keys(mcpServersSchema.parse(Object.fromEntries(given.map((name) => [name, local]))));
  it.each([
    ["my server", "my-server"],
    ["io.github.user/server", "io-github-user-server"],
    ["a__b", "a-b"],
    ["naïve", "naive"],
    ["@scope/pkg", "scope-pkg"],
    ["git_hub", "git_hub"],
  ])("%s is called %s", (given, own) => expect(names([given])).toEqual([own]));

  it("tells those apart that become the same", () => {
    const found = names([
      "my server",
      "my.server",
      "my-server",
      "メモ",
      "a".repeat(33),
      "a".repeat(34),
      "__proto__",
      "constructor",
    ]);
    expect(new Set(found).size).toBe(8);
    expect(found).toContain("my-server");
    for (const name of found) expect(name).toMatch(/^(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,30}[A-Za-z0-9]$/);
  });
});

test("members of prototypes are not entries", () => {
  const parsed = parseJson(
    '{ "mcpServers": { "__proto__": { "command": "evil" }, "a": { "__proto__": { "command": "evil" }, "constructor": 1 } } }',
  );
  const { mcpServers } = (parsed as { value: { mcpServers: unknown } }).value;
  const found = mcpServersSchema.parse(mcpServers);
  expect(Object.keys(found)).toEqual(["proto", "a"]);
  expect(found["a"]?.problem).toContain("it needs either a command or a url");
  expect(({} as Record<string, unknown>)["command"]).toBeUndefined();
});

test("of ten thousand servers a hundred are used, and one line says so", () => {
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`s${at}`, local]));
  const found = mcpServersSchema.parse(many);
  expect(Object.keys(found)).toHaveLength(101);
  expect(found["further"]?.problem).toBe("9900 further servers are not used; the limit is 100");
});

describe("a file", () => {
  const load = (content: object) => {
    const folder = filesIn({ "c.json": JSON.stringify(content) });
    mkdirSync(join(folder, "work"));
    const flags = { config: join(folder, "c.json"), workspace: join(folder, "work") };
    const loaded = loadConfig({ flags, env: {}, cwd: folder, home: "/home/me", platform: "linux" });
    if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
    return { folder, servers: loaded.config.mcpServers };
  };

  test("of VS Code is read like our own", () => {
    const { servers } = load({
      inputs: [{ id: "key" }],
      servers: { a: { type: "stdio", ...local }, b: remote },
    });
    expect(Object.keys(servers)).toEqual(["a", "b"]);
  });

  test("has paths from its own folder, from the home folder or from a variable", () => {
    const cwds = ["./server", "~/server", "${workspaceFolder}/x", "/abs"];
    const { servers, folder } = load({
      mcpServers: Object.fromEntries(cwds.map((cwd, at) => [`s${at}`, { ...local, cwd, envFile: cwd }])),
    });
    const own = [join(folder, "server"), "/home/me/server", "${workspaceFolder}/x", "/abs"];
    expect(Object.values(servers).map((one) => "cwd" in one && [one.cwd, one.envFile])).toEqual(
      own.map((path) => [path, path]),
    );
  });

  test("of ours has no other settings than ours", () => {
    expect(() => load({ workspace: "/work", servers: { a: local } })).toThrow("servers: unknown setting");
  });
});
