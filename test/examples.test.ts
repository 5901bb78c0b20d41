// Each example is a program that starts agents.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { entry } from "./server/auth/support.ts";
import { openHome } from "./support/harness.ts";
import { answersOf, openBrain, play } from "./support/harness-brain.ts";
import { serveHttp } from "./support/harness-http-process.ts";
import { nodeWithSqlite } from "./support/node-with-sqlite.ts";
import { startSite } from "./web/site.ts";

/** The examples check themselves and exit non-zero; what they print is checked here as well. */
const EXAMPLES: Record<string, RegExp> = {
  research: /kept in \/research\/tides\.md/,
  team: /coder wants to run write_file[\s\S]*reviewer: sound/,
  news: /list every TODO: finished/,
  cowork: /I wrote what you allowed/,
  langchain: /asked: .* write_file[\s\S]*app\.js:1/,
  langgraph: /the stream shows: files, messages, todos\n[\s\S]*note is in/,
};

async function works(name: string, output: RegExp): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, ["examples/run.mjs", name]);
  expect(stdout).toMatch(output);
}

const { research: first = /./, ...others } = EXAMPLES;
it("example research works", () => works("research", first));
it.each(Object.entries(others))("example %s works", { tags: "long" }, works);
it("example wire works", { tags: "long" }, () => works("wire", /(as expected[\s\S]*){4}/));

it("example front-end.mjs starts a run over the API, follows it, and approves what it asks", async () => {
  const { env, workspace } = await openHome({
    think: play({
      "list every TODO": [
        {
          text: "I write it down.",
          toolCalls: [{ name: "write_file", args: { file_path: "/workspace/todo.md", content: "none\n" } }],
        },
        { text: "The report is in todo.md." },
      ],
    }),
  });
  const config = join(workspace, "..", "tokens.json");
  writeFileSync(config, JSON.stringify({ http: { tokens: [entry("secret", "me")] } }));
  const { url } = await serveHttp({ env }, ["--config", config]);
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["examples/front-end.mjs", "list every TODO"],
    { env: { ...process.env, DEEPAGENT_API: url.replace("/mcp", "/api"), DEEPAGENT_TOKEN: "secret" } },
  );
  expect(stdout).toMatch(/approved: Create .*todo\.md[^]*The report is in todo\.md\.\n$/);
  expect(readFileSync(join(workspace, "todo.md"), "utf8")).toBe("none\n");
});

it(
  "example research.mjs says what it needs, and with a model and a search writes a report",
  { tags: "long" },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "research-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const example = join(process.cwd(), "examples/research.mjs");
    const start = (env: Record<string, string>) =>
      promisify(execFile)(process.execPath, [example, "When are spring tides?"], {
        cwd: folder,
        env: { PATH: process.env["PATH"], ...env },
      });
    await expect(start({ TAVILY_API_KEY: "k" })).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/needs:\n- a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY\n$/),
    });

    const results = [
      { title: "Tides", url: "https://example.com/tides", content: "After new and full moon." },
    ];
    const port = await startSite((_request, response) => response.end(JSON.stringify({ results })));
    const report = "Spring tides follow the moon [Tides](https://example.com/tides).";
    const brain = await openBrain(
      play({
        "When are spring tides?": [
          {
            toolCalls: [
              { name: "task", args: { description: "Find the days of tides", subagent_type: "researcher" } },
            ],
          },
          {
            toolCalls: [{ name: "write_file", args: { file_path: "/research/report.md", content: report } }],
          },
          { text: "The report is written." },
        ],
        "Find the days": [
          { toolCalls: [{ name: "web_search", args: { query: "spring tides" } }] },
          (thought) => ({ text: answersOf(thought)[0]?.text ?? "" }),
        ],
      }),
    );
    onTestFinished(() => brain.close());
    const { stdout } = await start({ ...brain.env, SEARXNG_URL: `http://127.0.0.1:${port}` });
    expect(stdout).toContain("task Find the days of tides");
    expect(stdout.trimEnd().endsWith(report)).toBe(true);
    expect(JSON.stringify(brain.thoughts.at(-2)?.request.messages)).toContain("https://example.com/tides");
  },
);

it(
  "example ai-sdk works, on the Node that its packages ask for",
  { tags: ["long", "ai-sdk", "node22"] },
  async () => {
    const { stdout } = await promisify(execFile)(nodeWithSqlite() ?? "", ["examples/ai-sdk/agent.mjs"]);
    expect(stdout).toMatch(/run: working[^]*asked: .* write_file[^]*run: completed[^]*app\.js:1/);
  },
);
