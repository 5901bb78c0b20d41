import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { ConfigSources, LoadedConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/schema.ts";

let root: string;
let home: string;
let cwd: string;

beforeEach(() => {
  root = filesIn();
  home = join(root, "home");
  cwd = join(root, "project");
  mkdirSync(home);
  mkdirSync(cwd);
});

const load = (sources: Partial<ConfigSources> = {}): LoadedConfig =>
  loadConfig({ flags: {}, env: {}, cwd, home, platform: "linux", ...sources });

function configOf(sources: Partial<ConfigSources> = {}): Config {
  const loaded = load(sources);
  if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

function problemsOf(sources: Partial<ConfigSources>): string[] {
  const loaded = load(sources);
  return loaded.ok ? [] : loaded.problems;
}

function configFile(content: unknown): string {
  const file = join(root, "deepagent.json");
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

describe("the configuration file", () => {
  it("may have comments, trailing commas and a $schema", () => {
    const text = `\uFEFF{
      "$schema": "./config.schema.json", // for the editor
      /* no key needed */
      "model": "offline",
      "limits": { "parallelTools": 3, },
    }`;
    expect(configOf({ flags: { config: configFile(text) } })).toMatchObject({
      model: "offline",
      limits: { parallelTools: 3 },
    });
  });

  it("is refused in one line when it is another file, and names some of many unknown settings", () => {
    const config = configFile(`{}${" ".repeat(1_000_000)}`);
    expect(problemsOf({ flags: { config } })).toEqual([
      `--config: the file ${config} has more than 1000000 characters`,
    ]);
    const unknown = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`key${n}`, n]));
    const problems = problemsOf({ flags: { config: configFile(JSON.stringify(unknown)) } });
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toBe("configuration: 4980 more unknown settings");
  });

  it("is refused in one line when it is nested without end", () => {
    const config = configFile("[".repeat(200_000));
    expect(problemsOf({ flags: { config } })).toEqual([expect.stringContaining("is not valid JSON")]);
  });
});

describe("precedence", () => {
  it("takes defaults when nothing is given", () => {
    const config = configOf();
    expect(config).toMatchObject({
      workspace: cwd,
      dataDir: join(home, ".local/share/deepagent-mcp"),
      approvals: { write: "workspace", allowModelAnswers: false },
      http: { host: "127.0.0.1", port: 8808 },
      logLevel: "info",
    });
    expect(config.model).toBeUndefined();
  });

  it("prefers flags to environment, environment to file, file to defaults", () => {
    const config = configFile({
      model: "openai:file",
      logLevel: "error",
      http: { port: 1, host: "127.0.0.2" },
      limits: { parallelTools: 3 },
    });
    expect(
      configOf({
        flags: { config, model: "openai:flag" },
        env: { DEEPAGENT_MODEL: "openai:env", DEEPAGENT_HTTP_PORT: "2" },
      }),
    ).toMatchObject({
      model: "openai:flag",
      http: { port: 2, host: "127.0.0.2" },
      logLevel: "error",
      limits: { parallelTools: 3, concurrentRuns: 8 },
    });
  });

  it("takes the config file from the environment, and from the flag first", () => {
    const file = configFile({ logLevel: "warn" });
    expect(configOf({ env: { DEEPAGENT_CONFIG: file } }).logLevel).toBe("warn");
    const missing = join(root, "missing.json");
    expect(configOf({ flags: { config: file }, env: { DEEPAGENT_CONFIG: missing } }).logLevel).toBe("warn");
  });

  it("treats an empty environment variable as absent", () => {
    expect(configOf({ env: { DEEPAGENT_MODEL: "", DEEPAGENT_CONFIG: "" } }).model).toBeUndefined();
  });

  it.each([
    ["docker/cli#3630", '"a:b"', "'12'", '"false"'],
    ["line ends of Windows", "a:b\r", " 12\r\n", "false\r"],
  ])("%s: a variable is read without what is around its value", (_source, model, days, page) => {
    const env = { DEEPAGENT_MODEL: model, DEEPAGENT_RETENTION_DAYS: days, DEEPAGENT_PAGE: page };
    expect(configOf({ env })).toMatchObject({ model: "a:b", retention: { days: 12 }, page: false });
  });

  it("reads numbers, booleans and lists from text", () => {
    const skills = [join(root, "one"), join(root, "two")];
    for (const folder of skills) mkdirSync(folder);
    const config = configOf({
      env: {
        DEEPAGENT_APPROVALS_ALLOW_MODEL_ANSWERS: "true",
        DEEPAGENT_DELIVERY_WINDOW: "1.5",
        DEEPAGENT_SKILLS: skills.join(delimiter),
        DEEPAGENT_HTTP_ALLOWED_HOSTS: "a.example, b.example",
      },
      flags: { "allowed-origins": ["x,y", "z"] },
    });
    expect(config.approvals.allowModelAnswers).toBe(true);
    expect(config.delivery.window).toBe(1.5);
    expect(config.skills).toEqual(skills);
    expect(config.http.allowedHosts).toEqual(["a.example", "b.example"]);
    expect(config.http.allowedOrigins).toEqual(["x", "y", "z"]);
  });
});

describe("problems", () => {
  it("reports every problem at once, each with setting and origin", () => {
    const config = configFile({
      modle: "offline",
      approvals: { wirte: "all", write: "sometimes" },
      limits: { concurrentRuns: 0 },
      subagents: [{ name: "Bad Name", description: "d", systemPrompt: "p" }],
      workspace: "relative/folder",
    });
    const problems = problemsOf({
      flags: { config, port: "http" },
      env: { DEEPAGENT_LOG_LEVEL: "loud", DEEPAGENT_MODLE: "x" },
    });
    const origin = `(from config file ${config})`;
    expect(problems).toEqual(
      expect.arrayContaining([
        `modle: unknown setting; did you mean model? ${origin}`,
        `approvals.wirte: unknown setting; did you mean write? ${origin}`,
        `approvals.write: must be workspace, all or none ${origin}`,
        `limits.concurrentRuns: must be at least 1 ${origin}`,
        `subagents[0].name: use lowercase letters, digits and hyphens ${origin}`,
        `workspace: must be an absolute path ${origin}`,
        "--port: must be a number",
        expect.stringMatching(/^DEEPAGENT_LOG_LEVEL: must be /),
        "DEEPAGENT_MODLE: unknown setting in the environment; did you mean DEEPAGENT_MODEL?",
      ]),
    );
    expect(problems).toHaveLength(9);
  });

  it.each([
    ["a scalar where a group belongs", { approvals: "none" }, "approvals: "],
    ["a list where a scalar belongs", { model: [] }, "model: "],
    ["null", { workspace: null }, "workspace: "],
  ])("reports %s", (_title, content, start) => {
    expect(problemsOf({ flags: { config: configFile(content) } })).toEqual([
      expect.stringMatching(new RegExp(`^${start}`)),
    ]);
  });

  it.each<[unknown, string]>([
    [{ model: 7 }, "model: must be a text, not a number"],
    [{ model: "" }, "model: must not be empty"],
    [{ page: "no" }, "page: must be true or false, not a text"],
    [{ skills: "/skills" }, "skills: must be a list, not a text"],
    [{ approvals: ["all"] }, "approvals: must be an object, not a list"],
    [{ workspace: null }, "workspace: must be a text, not null"],
    [{ limits: { toolCalls: 1.5 } }, "limits.toolCalls: must be a whole number"],
    [{ limits: { costUsd: 0 } }, "limits.costUsd: must be greater than 0"],
    [{ http: { port: 65_536 } }, "http.port: must be at most 65535"],
    [
      { execute: { sandbox: {} } },
      "execute.sandbox.provider: must be bubblewrap, local, docker, modal, runloop or daytona",
    ],
    [
      { execute: { sandbox: { provider: "docker", workdir: "x" } } },
      "execute.sandbox.workdir: must begin with /",
    ],
    [{ permissions: [{ operations: [], paths: ["/"] }] }, "permissions[0].operations: must not be empty"],
    [
      { subagents: [{ name: "数", description: "d" }] },
      "subagents[0].name: use lowercase letters, digits and hyphens",
    ],
    [
      { subagents: [{ name: "a", description: "d" }] },
      "subagents[0].systemPrompt: is missing; it must be a text",
    ],
    [{ mcpServers: 5 }, "mcpServers: must be an object, not a number"],
    [{ delivery: { clients: { "": {} } } }, "delivery.clients.: has the wrong form"],
  ])("describes %j in plain words", (content, problem) => {
    const config = configFile(content);
    const problems = problemsOf({ flags: { config } });
    expect(problems).toContain(`${problem} (from config file ${config})`);
    expect(problems.join()).not.toMatch(/invalid|expected|received|too (small|big)/i);
  });

  it("reports a missing file, a broken one and one that is no object", () => {
    const missing = join(root, "missing.json");
    expect(problemsOf({ flags: { config: missing } })).toEqual([
      `--config: the file ${missing} cannot be read`,
    ]);
    const broken = configFile('{\n  "model": "sk-secret" "x"\n}');
    const problems = problemsOf({ env: { DEEPAGENT_CONFIG: broken } });
    expect(problems).toEqual([expect.stringContaining(`${broken} is not valid JSON, line 2, column`)]);
    expect(problems.join()).not.toContain("sk-secret");
    expect(problemsOf({ flags: { config: configFile("[]") } })).toEqual([
      expect.stringContaining("must hold one JSON object"),
    ]);
  });

  it("never echoes values of settings that are no paths", () => {
    const secret = "sk-secret-value";
    const config = configFile({ apiKey: secret, logLevel: secret, subagents: [{ key: secret }] });
    const problems = problemsOf({
      flags: { config, port: secret },
      env: { DEEPAGENT_API_KEY: secret, DEEPAGENT_LIMITS_MODEL_CALLS: secret },
    });
    expect(problems.length).toBeGreaterThan(4);
    expect(problems.join("\n")).not.toContain(secret);
  });

  it("does not take a file's __proto__ for settings", () => {
    const config = configFile('{"__proto__": {"model": "offline"}}');
    const loaded = load({ flags: { config } });
    expect(loaded.ok ? loaded.config.model : loaded.problems.join()).not.toBe("offline");
    expect({}).not.toHaveProperty("model");
  });
});

describe("the place of large values", () => {
  const DEEPAGENT_STORAGE = "postgres://db.example/deepagent";
  const names = { accessKeyIdVariable: "VALUES_ID", secretAccessKeyVariable: "VALUES_KEY" };

  it("comes from the environment, or from the file with the names of its keys", () => {
    const s3 = { DEEPAGENT_STORAGE_S3_BUCKET: "values", DEEPAGENT_STORAGE_S3_PREFIX: "deepagent/a" };
    const env = { DEEPAGENT_STORAGE, ...s3 };
    expect(configOf({ env }).storageS3).toEqual({ bucket: "values", prefix: "deepagent/a" });
    const storageS3 = { bucket: "other", ...names };
    const flags = { config: configFile({ storage: DEEPAGENT_STORAGE, storageS3 }) };
    const keys = { VALUES_ID: "id", VALUES_KEY: "key" };
    expect(configOf({ flags, env: keys }).storageS3).toEqual(storageS3);
    expect(problemsOf({ flags })).toEqual([
      "storageS3.accessKeyIdVariable: the environment variable VALUES_ID is not set",
      "storageS3.secretAccessKeyVariable: the environment variable VALUES_KEY is not set",
    ]);
  });

  it.each([
    [{ storageS3: { bucket: "values" } }, "storageS3: needs the setting storage, the address of a Postgres"],
    [{ storage: DEEPAGENT_STORAGE, storageS3: { prefix: "a" } }, "storageS3.bucket:"],
    [
      { storage: DEEPAGENT_STORAGE, storageS3: { bucket: "values", prefix: "../a" } },
      "must be a path such as",
    ],
    [
      { storage: DEEPAGENT_STORAGE, storageS3: { bucket: "values", prefix: "{principal}" } },
      "must be a path",
    ],
    [
      { storage: DEEPAGENT_STORAGE, storageS3: { bucket: "values", accessKeyIdVariable: "A" } },
      "needs accessKeyIdVariable and secretAccessKeyVariable together",
    ],
  ])("is refused with what to do: %j", (config, text) => {
    const found = problemsOf({ flags: { config: configFile(config) }, env: { A: "a" } });
    expect(found).toEqual([expect.stringContaining(text)]);
  });
});

describe("folders", () => {
  it("has no workspace in the home directory and in the root, and says how to set one", () => {
    for (const wide of [home, "/"]) {
      const loaded = load({ cwd: wide });
      const why = wide === "/" ? "/ is the root of the file system" : `${home} is your home folder`;
      expect(loaded).toMatchObject({
        ok: true,
        warnings: [expect.stringMatching(`^No workspace: ${why}, .*--workspace`)],
      });
      expect(loaded.ok && loaded.config.workspace).toBeUndefined();
    }
    expect(configOf({ cwd: home, flags: { workspace: cwd } }).workspace).toBe(cwd);
    expect(configOf({ cwd: home, flags: { workspace: "." } }).workspace).toBe(home);
  });

  it("resolves a relative flag, and refuses a relative folder from environment or file", () => {
    expect(configOf({ cwd: root, flags: { workspace: "project" } }).workspace).toBe(cwd);
    expect(problemsOf({ cwd: root, env: { DEEPAGENT_WORKSPACE: "project" } })).toEqual([
      "DEEPAGENT_WORKSPACE: must be an absolute path",
    ]);
    expect(problemsOf({ env: { DEEPAGENT_DATA_DIR: "data" } })).toEqual([
      "DEEPAGENT_DATA_DIR: must be an absolute path",
    ]);
  });

  it("expands ~ from every source", () => {
    mkdirSync(join(home, "code"));
    expect(configOf({ env: { DEEPAGENT_WORKSPACE: "~/code" } }).workspace).toBe(join(home, "code"));
    expect(configOf({ flags: { config: configFile({ dataDir: "~/data" }) } }).dataDir).toBe(
      join(home, "data"),
    );
    expect(configOf({ flags: { workspace: "~/code" } }).workspace).toBe(join(home, "code"));
  });

  it("reports a workspace or skills folder that is missing or no folder", () => {
    const missing = join(root, "missing");
    const file = join(root, "file");
    writeFileSync(file, "");
    expect(problemsOf({ flags: { workspace: missing }, env: { DEEPAGENT_SKILLS: file } })).toEqual([
      `--workspace: ${missing} does not exist or cannot be opened`,
      `DEEPAGENT_SKILLS: ${file} is not a folder`,
    ]);
  });

  it("explains folders that another client would have replaced", () => {
    const hint = (name: string) => `: the client did not replace ${name}, so write the folder itself`;
    expect(problemsOf({ flags: { workspace: "${workspaceFolder}" } })).toEqual([
      expect.stringContaining(`does not exist or cannot be opened${hint("${workspaceFolder}")}`),
    ]);
    expect(problemsOf({ env: { DEEPAGENT_WORKSPACE: "%USERPROFILE%/code" } })).toEqual([
      `DEEPAGENT_WORKSPACE: must be an absolute path${hint("%USERPROFILE%")}`,
    ]);
  });

  it("reads a file in UTF-16 or with a byte order mark, and says that one is empty", () => {
    const file = join(root, "odd.json");
    const settings = '{ "model": "offline" }\r\n';
    for (const bytes of [Buffer.from(`\uFEFF${settings}`, "utf16le"), Buffer.from(`\uFEFF${settings}`)]) {
      writeFileSync(file, bytes);
      expect(configOf({ flags: { config: file } }).model).toBe("offline");
    }
    writeFileSync(file, " \n");
    expect(problemsOf({ flags: { config: file } })).toEqual([
      `--config: the file ${file} is empty; {} means no settings`,
    ]);
  });

  it("finds what of this program no agent may see: data, compiled code, the file it is configured by", () => {
    const file = configFile({ dataDir: "~/data" });
    const cache = join(home, ".cache", "deepagent-mcp", "compile");
    expect(configOf({ flags: { config: file } }).privatePaths).toEqual([cache, join(home, "data"), file]);
  });

  it("refuses to show agents the folder in which data is kept, or one inside it", () => {
    const data = join(home, "data");
    mkdirSync(join(data, "deep"), { recursive: true });
    symlinkSync(data, join(home, "link"));
    const dataDir = { DEEPAGENT_DATA_DIR: data };
    expect(problemsOf({ flags: { workspace: data }, env: dataDir })).toEqual([
      expect.stringMatching(/^--workspace: .*keeps its data.*choose another/),
    ]);
    expect(problemsOf({ flags: { workspace: join(home, "link", "deep") }, env: dataDir })).toHaveLength(1);
    expect(problemsOf({ env: { ...dataDir, DEEPAGENT_SKILLS: join(data, "deep") } })).toHaveLength(1);
    expect(problemsOf({ env: { ...dataDir, DEEPAGENT_EXECUTE_READ_ONLY: data } })).toHaveLength(1);
    expect(configOf({ flags: { workspace: home }, env: dataDir }).workspace).toBe(home);
  });

  it.each<[NodeJS.Platform, Record<string, string>, string]>([
    ["linux", { XDG_DATA_HOME: "/data" }, "/data/deepagent-mcp"],
    ["linux", { XDG_DATA_HOME: "relative" }, "HOME/.local/share/deepagent-mcp"],
    ["darwin", { XDG_DATA_HOME: "/data" }, "HOME/Library/Application Support/deepagent-mcp"],
    ["win32", { LOCALAPPDATA: "/local" }, "/local/deepagent-mcp"],
  ])("keeps data where %s programs do, with %j", (platform, env, expected) => {
    expect(configOf({ platform, env }).dataDir).toBe(expected.replace("HOME", home));
  });
});

describe("a profile", () => {
  it("gives other defaults, which settings that are given count before", () => {
    const { approvals, execute, limits } = configOf({ flags: { profile: "deepcowork" } });
    const read = [approvals.write, approvals.execute, execute.timeout, execute.maxOutputBytes];
    expect(read).toEqual(["all", "all", 60, 50_000]);
    expect(limits.modelCalls).toBe(25);
    const config = configFile({ profile: "production", approvals: { write: "none" } });
    const { files, approvals: own } = configOf({ flags: { config } });
    expect([files.maxFileSizeMb, own.write, own.execute]).toEqual([5, "none", "all"]);
    expect(configOf().files.maxFileSizeMb).toBe(10);
  });

  it("is one of two", () => {
    expect(problemsOf({ env: { DEEPAGENT_PROFILE: "strict" } })).toEqual([
      "DEEPAGENT_PROFILE: must be deepcowork or production",
    ]);
  });
});

describe("parameters of models", () => {
  it("are kept as they are given", () => {
    const modelParameters = { "anthropic:claude": { temperature: 0.2, thinking: { type: "adaptive" } } };
    const config = configFile({ modelParameters });
    expect(configOf({ flags: { config } }).modelParameters).toEqual(modelParameters);
  });

  it("cannot replace a key, an endpoint or a limit, whatever else is wrong", () => {
    const config = configFile({ modelParameters: { "openai:": { apiKey: "sk-1", maxRetries: 9 } } });
    const problems = problemsOf({ flags: { config } });
    expect(problems.join("\n")).toMatch(/modelParameters\.openai:\.apiKey: .*sets this parameter itself/);
    expect(problems.join("\n")).toContain("maxRetries");
    expect(problems.join("\n")).not.toContain("sk-1");
  });

  it("are an object for each model", () => {
    const config = configFile({ modelParameters: { "openai:": 0.2 } });
    expect(problemsOf({ flags: { config } }).join()).toContain("modelParameters.openai:");
  });
});
