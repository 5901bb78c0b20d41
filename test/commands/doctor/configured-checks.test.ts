import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { checkAgentFiles } from "../../../src/app/checks/agent-files.ts";
import { checkEmbeddings, checkKeys, checkOtherModels } from "../../../src/app/checks/models.ts";
import { checkTools } from "../../../src/app/checks/servers.ts";
import { checkSearchAnswers, checkSearchKey } from "../../../src/app/checks/web.ts";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { filesIn } from "../../support/files-in.ts";
import { startSite } from "../../web/site.ts";
import { toyServer } from "../../agent/mcp-tools/toy-server.ts";
import { olderSse, sloppyHttp } from "../../support/sloppy-mcp-server.ts";

const read = (config: object) => ConfigSchema.parse({ dataDir: "/data", ...config });

/** What a check says, in these words or in such. */
const finding = (name: string, ok: boolean, text: unknown) => ({
  name,
  ok,
  text: text instanceof RegExp ? expect.stringMatching(text) : text,
});

it("starts other MCP servers and counts what they offer", async () => {
  const { command, args } = await toyServer();
  const config = read({
    mcpServers: {
      toy: { command, args, tools: ["store", "look.up"] },
      broken: { command: "/no/such/program" },
    },
  });
  expect(await checkTools(config, {})).toEqual([
    finding(
      "MCP server",
      true,
      /^toy: running, 2 tools, 1 of them with approval\nEntry: started as \S+ with \d arguments?; tools store, look\.up; approve writes; timeout 120 s\.$/,
    ),
    finding(
      "MCP server",
      false,
      /^broken: not running, no tools; its command was not found\nEntry: started as program with 0 arguments;/,
    ),
  ]);
  expect(await checkTools(read({}), {})).toEqual([]);
});

it("lists entries that are left out, switched off or changed, without any of their values", async () => {
  const secret = "s3cret-value";
  const mcpServers = {
    "My Server": { command: "/no/such/program", args: [secret], env: { KEY: secret }, headersHelper: secret },
    odd: { command: "x", timeout: secret },
    asks: { url: "http://127.0.0.1:9/mcp", headers: { Authorization: "Bearer ${input:key}" } },
    off: { command: "x", enabled: false },
  };
  const checks = await checkTools(read({ mcpServers }), {});
  expect(checks).toEqual([
    finding(
      "MCP server",
      false,
      /^My-Server: not running[^\n]*\nEntry: started as program with 1 argument; env KEY;[^\n]*\nIt is called "My Server" in the configuration[^\n]*\nLeft out of its entry: headersHelper/,
    ),
    finding("MCP server", false, /^odd: .*its entry is not valid: timeout must be a number, not a text$/),
    finding("MCP server", false, /^asks: .*its entry has \$\{input:key\}, which is not filled in here/),
    finding("MCP server", true, "off: switched off in its entry"),
  ]);
  expect(JSON.stringify(checks)).not.toContain(secret);
});

it("says that a server speaks another transport than its type says", async () => {
  const { url } = await sloppyHttp(olderSse(405));
  expect(await checkTools(read({ mcpServers: { old: { url } } }), {})).toEqual([
    finding(
      "MCP server",
      true,
      /^old: running, 1 tool, 1 of them with approval\nEntry: reached at 127\.0\.0\.1:\d+; approve writes; timeout 120 s\.\nThe MCP server 'old' was reached over the older HTTP\+SSE transport\. Set its type to "sse" to connect at once\.$/,
    ),
  ]);
});

it("names tools of subagents that do not exist, and files that describe none", async () => {
  const workspace = filesIn();
  const file = (path: string, text: string): void => {
    mkdirSync(join(workspace, dirname(path)), { recursive: true });
    writeFileSync(join(workspace, path), text);
  };
  const agent = (name: string, tools: string): string =>
    `---\nname: ${name}\ndescription: d\ntools: ${tools}\n---\nWork.\n`;
  file(".claude/agents/reviewer.md", agent("reviewer", "Read, WebFetch, Gerp, mcp__broken__tool"));
  file(".claude/agents/hidden.md", agent("hidden", "Nonsense"));
  file(".claude/agents/helper.md", agent("general-purpose", "Read"));
  file(".deepagent/agents/notes.md", "no front matter");
  const hidden = { name: "hidden", description: "d", systemPrompt: "p", tools: ["toy", "toy__stroe"] };
  const { command, args } = await toyServer();
  const config = read({
    workspace,
    subagents: [hidden],
    mcpServers: { toy: { command, args }, broken: { command: "/no/such/program" } },
  });
  expect((await checkTools(config, {})).slice(2)).toEqual([
    finding(
      "Subagent",
      false,
      expect.stringContaining("helper.md: name: 'general-purpose' is the built-in subagent"),
    ),
    finding(
      "Subagent",
      false,
      "/.deepagent/agents/notes.md is left out: /.deepagent/agents/notes.md does not start with front matter between '---' lines",
    ),
    finding(
      "Subagent",
      false,
      "Subagent 'hidden' names the tool 'toy__stroe', which does not exist here; it works without it. Did you mean toy__store?",
    ),
    finding("Subagent", false, expect.stringContaining("Did you mean grep")),
  ]);
});

it("asks the search provider once, and says what its key lacks", async () => {
  let status = 200;
  const port = await startSite((_request, response) => response.writeHead(status).end('{"results":[]}'));
  const url = `http://127.0.0.1:${port}`;
  const env = { TAVILY_API_KEY: "tvly-1" };
  const config = read({ web: { search: { provider: "tavily", url } } });
  expect(checkSearchKey({ config, env })).toEqual([]);
  expect(await checkSearchAnswers({ config, env })).toEqual([finding("Web search", true, "Tavily answered")]);
  status = 401;
  expect(await checkSearchAnswers({ config, env })).toEqual([
    finding("Web search", false, "Tavily refused access (HTTP 401): check the key in TAVILY_API_KEY."),
  ]);
  expect(checkSearchKey({ config, env: {} })).toEqual([
    finding(
      "Web search",
      false,
      "The search provider tavily needs the environment variable TAVILY_API_KEY, which is not set. Set it in the environment, or store it with `keys set`.",
    ),
  ]);
  for (const web of [{ mode: "off" }, { search: { provider: "off" } }]) {
    const without = read({ web });
    expect(checkSearchKey({ config: without, env })).toEqual([]);
    expect(await checkSearchAnswers({ config: without, env })).toEqual([]);
  }
});

it("names skills that are left out, and links that lead out of the workspace", async () => {
  const workspace = filesIn({
    "skills/lost/SKILL.md": "---\nname: lost\n---\n",
    "skills/loose/SKILL.md": "---\nname: loose\ndescription: a: b\n---\n",
  });
  symlinkSync("/usr", join(workspace, "skills/far"));
  expect(await checkAgentFiles(read({ model: "offline", workspace }), {})).toEqual([
    finding(
      "Skill",
      false,
      /^\/workspace\/skills\/far is left out: it is a link that leads out of its folder/,
    ),
    finding(
      "Skill",
      true,
      /^\/workspace\/skills\/loose\/SKILL\.md: the front matter is not YAML: .*line by line$/,
    ),
    finding("Skill", false, /^\/workspace\/skills\/lost\/SKILL\.md is left out: .*description is missing/),
  ]);
});

it("says where each key that is used comes from", () => {
  const config = read({
    model: "anthropic:claude-x",
    fallbackModels: ["openai:gpt-5.4", "offline"],
    subagents: [{ name: "reviewer", description: "d", systemPrompt: "p", model: "mistralai:m" }],
  });
  const env = { ANTHROPIC_API_KEY: "sk-a", OPENAI_API_KEY: "sk-o", GROQ_API_KEY: "sk-g" };
  expect(checkKeys({ config, env, found: ["ANTHROPIC_API_KEY"] })).toEqual([
    finding("Keys", true, "ANTHROPIC_API_KEY, from the keychain\nOPENAI_API_KEY, from the environment"),
  ]);
  expect(checkKeys({ config: read({ model: "offline" }), env, found: [] })).toEqual([]);
});

it("looks at the models of fallbacks, of subagents and of the judge", () => {
  const config = read({
    fallbackModels: ["openai:gpt-5.4", "offline"],
    judgeModel: "openai:gpt-5-mini",
    subagents: [{ name: "reviewer", description: "d", systemPrompt: "p", model: "anthropic:claude-x" }],
  });
  expect(checkOtherModels({ config, env: { OPENAI_API_KEY: "key" }, lendable: true })).toMatchObject([
    { ok: true, text: "openai:gpt-5.4 (fallback)" },
    { ok: true, text: "offline (fallback)" },
    { ok: true, text: "openai:gpt-5-mini (judge of goals)" },
    { ok: false, text: expect.stringContaining("of reviewer: Model 'anthropic:claude-x' needs") },
  ]);
});

it.each([
  [{}, []],
  [{ embeddings: "openai:e" }, [{ ok: true, text: "openai:e (of memories)" }]],
  [{ embeddings: "anthropic:e" }, [{ ok: false, text: expect.stringContaining("ANTHROPIC_API_KEY") }]],
])("looks at the embeddings of memories %j", (memories, expected) => {
  expect(checkEmbeddings(read({ memories }), { OPENAI_API_KEY: "key" })).toMatchObject(expected);
});

it("names models that files ask for in vain, and what the prompt has no room for", async () => {
  const agent = (name: string, model: string) =>
    `---\nname: ${name}\ndescription: ${"d".repeat(500)}\nmodel: ${model}\n---\nWork.\n`;
  const names = Array.from({ length: 30 }, (_, index) => `x${index}`);
  const workspace = filesIn({
    ...Object.fromEntries(names.map((name) => [`.claude/agents/${name}.md`, agent(name, "haiku")])),
    ".deepagent/agents/stranger.md": agent("stranger", "openai:gpt-5.4"),
    ...Object.fromEntries(names.map((name) => [`skills/${name}/SKILL.md`, agent(name, "none")])),
  });
  const config = read({ workspace, model: "offline", allowedModels: ["anthropic:claude-haiku-4-5"] });
  expect(await checkAgentFiles(config, { ANTHROPIC_API_KEY: "k" })).toEqual([
    finding(
      "Subagent",
      true,
      expect.stringContaining("'stranger' asks in its file for the model 'openai:gpt-5.4'"),
    ),
    finding("Prompt", true, /^lists \d+ of 32 subagents .*\(8000\) allows/),
    finding("Prompt", true, /^lists \d+ of 34 skills/),
  ]);
  const roomy = { ...config, limits: { ...config.limits, listedCharacters: 100_000 } };
  expect(await checkAgentFiles(roomy, { ANTHROPIC_API_KEY: "k" })).toHaveLength(1);
  expect(await checkAgentFiles(read({ model: "offline" }), {})).toEqual([]);
});
