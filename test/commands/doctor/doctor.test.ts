import { chmodSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, test, vi } from "vitest";
import { within } from "../../../src/app/checks/check.ts";
import { checkCommands } from "../../../src/app/checks/commands.ts";
import { checkPrices } from "../../../src/app/checks/models.ts";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { filesIn } from "../../support/files-in.ts";
import { freePort } from "../../support/free-port.ts";
import { program } from "../../support/harness-stdio.ts";
import { BUCKET, startS3rver } from "../../support/s3-servers.ts";
import { startWireServer } from "../../support/wire-server.ts";
import { runBin } from "../built-bin.ts";
import { terminalHome } from "../terminal-home.ts";

/** Runs doctor with the settings of a file. */
async function doctor(config: object, env: Record<string, string> = {}, ...flags: string[]) {
  const home = terminalHome();
  const file = join(filesIn({ "deepagent.json": JSON.stringify(config) }), "deepagent.json");
  const { code, stdout } = await runBin(["doctor", "--config", file, ...flags], {
    cwd: home.workspace,
    env: { ...home.env, ...env },
    program: await program(),
  });
  return { code, stdout };
}

describe("the provider", () => {
  const model = "anthropic:claude-好-1";
  async function provider(reply: Parameters<typeof startWireServer>[0], key?: string) {
    const server = await startWireServer(reply);
    onTestFinished(() => server.close());
    const env = { ...server.env("anthropic"), DEEPAGENT_MODEL: model } as Record<string, string>;
    return { server, env: key === undefined ? env : { ...env, ANTHROPIC_API_KEY: key } };
  }

  it("is asked once for an answer, and not with --offline", async () => {
    const { server, env } = await provider(() => ({ text: "OK" }));
    expect(await doctor({}, env)).toEqual({
      code: 0,
      stdout: expect.stringContaining(`✔ Provider      ${model} answered\n`),
    });
    expect(server.requests).toHaveLength(1);
    const { code, stdout } = await doctor({}, env, "--offline");
    expect({ code, provider: stdout.includes("Provider") }).toEqual({ code: 0, provider: false });
    expect(server.requests).toHaveLength(1);
  });

  it("is asked with the parameters of the model, without which it may refuse", async () => {
    const { server, env } = await provider(() => ({ text: "OK" }));
    await doctor({ modelParameters: { "anthropic:": { temperature: 0.25 } } }, env);
    expect(server.requests.map(({ body }) => body["temperature"])).toEqual([0.25]);
  });

  it("refuses a key, does not know a model, or cannot be reached, and each is said", async () => {
    const wrongKey = await provider(() => ({ text: "OK" }), "sk-ant-wrong-0123456789");
    const unknown = await provider(() => ({
      status: 404,
      message: "model: claude",
      type: "not_found_error",
    }));
    const port = await freePort();
    const nobody = { ...unknown.env, ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` };
    // Requests to this port are never sent.
    const badPort = { ...unknown.env, ANTHROPIC_BASE_URL: "http://127.0.0.1:6000" };
    const told = await Promise.all(
      [wrongKey.env, unknown.env, nobody, badPort].map((env) => doctor({}, env)),
    );
    expect(told.map(({ code }) => code)).toEqual([1, 1, 1, 1]);
    const lines = told.map(({ stdout }) => /^✖ Provider +(.*)$/m.exec(stdout)?.[1] ?? stdout);
    expect(lines[0]).toMatch(
      /refused the key \(HTTP 401\)\. Check the key in ANTHROPIC_API_KEY and what it may use\. To replace it, set ANTHROPIC_API_KEY .*`deepagent-mcp keys set ANTHROPIC_API_KEY`/,
    );
    expect(lines[1]).toMatch(/was not found at its provider \(HTTP 404\)\. Check the name after the colon/);
    expect(lines[2]).toMatch(
      /could not be reached: the connection failed \(ECONNREFUSED\)\. Check the network/,
    );
    expect(lines[3]).toMatch(
      /could not be reached: the connection failed\. Check the network and the configured endpoint/,
    );
    expect(JSON.stringify(told)).not.toContain("sk-ant-wrong");
  });

  it("has a time limit", async () => {
    const aborted: boolean[] = [];
    const silent = (signal: AbortSignal) =>
      new Promise<string>(() => signal.addEventListener("abort", () => aborted.push(true)));
    expect(await within(0.02, silent, (time) => `late after ${time}`)).toBe("late after 0.02 s");
    expect(aborted).toEqual([true]);
    expect(
      await within(
        10,
        () => Promise.resolve("in time"),
        () => "late",
      ),
    ).toBe("in time");
  });
});

it.each([
  ["openai:mystery-model", {}, false],
  ["openai:gpt-5.4", {}, true],
  ["openai:mystery-model", { mystery: { input: 1, output: 2 } }, true],
  ["openai:mystery", { "mystery-2026": { input: 1, output: 2 } }, true],
])("knows whether %s with prices %j can keep a cost limit", (model, prices, ok) => {
  const config = ConfigSchema.parse({ dataDir: "/nowhere", model, limits: { costUsd: 2, prices } });
  const [check] = checkPrices({ config, env: { OPENAI_API_KEY: "key" }, lendable: false });
  expect(check).toMatchObject({ name: "Cost limit", ok });
  if (!ok)
    expect(check?.text).toMatch(/the price of mystery-model is not known, so .*Set it in limits\.prices/);
});

it("finds what would fail later", async () => {
  const port = await freePort();
  const dead = `http://127.0.0.1:${port}`;
  const { code, stdout } = await doctor(
    {
      systemPromptFile: "/nowhere/提示.md",
      execute: {
        readOnly: ["/nowhere/toolchain"],
        sandbox: { provider: "docker", program: "no-such-docker", image: "a" },
      },
      files: { readOnly: ["/vendor"] },
      http: {
        host: "0.0.0.0",
      },
      mounts: { "/archive/": { s3: { bucket: "archive", endpoint: dead } } },
      mcpServers: {
        broken: { command: process.execPath, args: ["-e", "console.error('no 🔑'); process.exit(3)"] },
      },
    },
    { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" },
  );
  expect(code).toBe(1);
  const problems = stdout.split("\n").filter((line) => line.startsWith("✖"));
  expect(problems).toEqual([
    expect.stringMatching(
      /^✖ Prompt file +The file of systemPromptFile cannot be read \(ENOENT\)\. Restore it/,
    ),
    expect.stringMatching(/^✖ Commands +execute\.sandbox: no-such-docker cannot be started; install it/),
    expect.stringMatching(/^✖ Read-only +execute\.readOnly: \/nowhere\/toolchain does not exist/),
    expect.stringMatching(/^✖ Read-only +files\.readOnly: \/vendor does not exist in the workspace/),
    expect.stringMatching(/^✖ Mount +\/archive\/: .*the S3 server cannot be reached \(ECONNREFUSED\)/),
    expect.stringMatching(/^✖ MCP server +broken: not running, no tools; .*no 🔑/),
    expect.stringMatching(
      /^✖ HTTP +Other machines can reach --host 0\.0\.0\.0, and requests are not authenticated/,
    ),
  ]);
  expect(stdout).toMatch(/\n7 of \d+ checks failed\.\n$/);
});

it("finds nothing where all of it is there", async () => {
  const s3 = await startS3rver();
  onTestFinished(() => s3.stop());
  const folder = filesIn({ "提示.md": "Answer in English.", "tools/a": "" });
  const keys = { accessKeyIdVariable: "ID", secretAccessKeyVariable: "KEY" };
  const { code, stdout } = await doctor(
    {
      systemPromptFile: join(folder, "提示.md"),
      limits: { costUsd: 2, prices: { off: { input: 1, output: 2 } } },
      execute: { readOnly: [join(folder, "tools")] },
      mounts: { "/archive/": { s3: { bucket: BUCKET, endpoint: s3.endpoint, ...keys } } },
    },
    { ID: s3.credentials.accessKeyId, KEY: s3.credentials.secretAccessKey },
  );
  expect(stdout).toMatch(/✔ Cost limit +\$2 for each run\n/);
  expect(stdout).toMatch(/✔ Mount +\/archive\/: can be listed\n/);
  expect({ code, end: stdout.split("\n").at(-2) }).toEqual({
    code: 0,
    end: "All checks passed. You're ready to start a run.",
  });
});

describe("the sandbox", () => {
  /** A program that answers as Docker does. `image`: the only one it has; `serves`: whether its service runs. */
  function docker(image: string, serves: boolean): string {
    const folder = filesIn({
      docker: `#!/bin/sh
case "$1" in
  --version) echo "Docker version 1" ;;
  ps) ${serves ? "exit 0" : 'echo "Cannot connect to the Docker daemon" >&2; exit 1'} ;;
  image) [ "$3" = "${image}" ] ;;
  *) exit 1 ;;
esac
`,
    });
    chmodSync(join(folder, "docker"), 0o755);
    return [folder, process.env["PATH"]].join(delimiter);
  }

  const withSandbox = (sandbox: object) => ConfigSchema.parse({ dataDir: "/data", execute: { sandbox } });
  afterEach(() => vi.unstubAllEnvs());

  it.each([
    [{ provider: "docker" }, true, /execute\.sandbox: A container needs an image, or as sandboxId/],
    [
      { provider: "docker", image: "missing:1" },
      true,
      /The image missing:1 is not on this machine; get it with: docker pull missing:1/,
    ],
    [
      { provider: "docker", image: "known:1" },
      false,
      /docker cannot reach its service: Cannot connect to the Docker daemon; start it/,
    ],
    [
      { provider: "docker", sandboxId: "gone" },
      true,
      /The container 'gone' does not run; start it or give an image/,
    ],
    [{ provider: "modal" }, true, /Sandboxes of Modal need its package and a key: run npm install modal@/],
    [{ provider: "runloop" }, true, /npm install @runloop\S+ and set RUNLOOP_API_KEY/],
    [
      { provider: "daytona", setupScriptPath: "/nowhere/setup.sh" },
      true,
      /The file of setupScriptPath cannot be read/,
    ],
  ])("is not ready: %j", async (sandbox, serves, text) => {
    vi.stubEnv("PATH", docker("known:1", serves));
    expect(await checkCommands(withSandbox(sandbox))).toEqual({
      name: "Commands",
      ok: false,
      text: expect.stringMatching(text),
    });
  });

  it("is ready with its image", async () => {
    vi.stubEnv("PATH", docker("known:1", true));
    expect(await checkCommands(withSandbox({ provider: "docker", image: "known:1" }))).toMatchObject({
      ok: true,
      text: "run in a sandbox (docker), each approved by a person",
    });
  });
});

test.each([
  ["its keys", "jwksUrl", (url: string) => ({ jwksUrl: `${url}/keys` })],
  [
    "an answer about tokens",
    "introspection",
    (url: string) => ({
      introspection: { url: `${url}/ask`, clientId: "a", clientSecretVariable: "ISSUER_SECRET" },
    }),
  ],
])("an OAuth issuer is asked for %s", async (_title, setting, way) => {
  const server = createServer((request, response) => {
    const answer = request.url === "/keys" ? { keys: [] } : { active: false };
    response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
  const http = { oauth: { issuer: url, resource: "https://agent.example/mcp", ...way(url) } };
  const env = { ISSUER_SECRET: "s" };
  expect((await doctor({ http }, env)).stdout).toContain(`✔ OAuth         ${url} answers\n`);
  await new Promise((done) => server.close(done));
  const { code, stdout } = await doctor({ http }, env);
  expect(code).toBe(1);
  expect(stdout).toMatch(
    new RegExp(`✖ OAuth +${url} cannot .* no token would be accepted.*http\\.oauth\\.${setting}`),
  );
});

test("a run in the terminal says before its start what it lacks, and speaks of no server", async () => {
  const home = terminalHome();
  const settings = { systemPromptFile: "/nowhere/a.md", execute: { sandbox: { provider: "docker" } } };
  const file = join(filesIn({ "deepagent.json": JSON.stringify(settings) }), "deepagent.json");
  const { code, stdout, stderr } = await home.bin("run", "list every TODO", "--config", file);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr.match(/^✖ [A-Z][a-z]+( [a-z]+)?/gm)).toEqual(["✖ Prompt file", "✖ Commands"]);
  expect(stderr).toContain("deepagent-mcp: The run cannot start. Fix the above, then try again.");
  expect((await home.bin("runs", "list")).stdout).not.toContain("TODO");
});

test.each([
  [{}, [], /✖ Model +No model is configured\. To fix this, do one of the following:/],
  [
    { DEEPAGENT_MODEL: "client" },
    [],
    /✖ Model +The model `client` is lent by an MCP client, and none is connected here/,
  ],
  [
    { DEEPAGENT_MODEL: "offline" },
    ["HOME"],
    /✖ Workspace +No workspace: (\S+) is your home folder, which is too wide/,
  ],
])("run with %j %j is refused, and its texts have no server", async (env, [wide], text) => {
  const home = terminalHome();
  const cwd = wide === undefined ? home.workspace : (home.env["HOME"] ?? "");
  const { code, stdout, stderr } = await runBin(["run", "x"], {
    cwd,
    env: { ...home.env, DEEPAGENT_MODEL: "", ...env },
    program: await program(),
  });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(text);
  expect(stderr).not.toMatch(/\bserver|^\{/im);
});
