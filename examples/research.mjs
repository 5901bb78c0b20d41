// A research agent on the web: it plans, searches, reads pages, and writes a report that cites them.
// Usage: node examples/research.mjs "your question"
// It needs the key of a model and a search provider, and says so if one is missing. The report is in research/.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CompositeBackend, createDeepAgent, FilesystemBackend, StateBackend } from "deepagent-mcp";

const question = process.argv.slice(2).join(" ") || "What is new in AI agents this year?";
const { ANTHROPIC_API_KEY, OPENAI_API_KEY, SEARXNG_URL, ...env } = process.env;
const model = ANTHROPIC_API_KEY
  ? "anthropic:claude-sonnet-4-5-20250929"
  : OPENAI_API_KEY
    ? "openai:gpt-5.4"
    : undefined;
const hasSearch = SEARXNG_URL || env.TAVILY_API_KEY || env.BRAVE_API_KEY || env.EXA_API_KEY;
if (!model || !hasSearch) {
  console.error("This example asks a real model about the real web. It needs:");
  if (!model) console.error("- a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY");
  if (!hasSearch)
    console.error(
      "- a search: set TAVILY_API_KEY, BRAVE_API_KEY or EXA_API_KEY, or SEARXNG_URL to the address of a SearXNG",
    );
  process.exit(2);
}

const folder = join(process.cwd(), "research");
mkdirSync(folder, { recursive: true });

const agent = createDeepAgent({
  model,
  // Nobody is asked about pages; `web: "ask"` would stop at each with an interrupt.
  web: { mode: "allow", ...(SEARXNG_URL ? { search: { provider: "searxng", url: SEARXNG_URL } } : {}) },
  backend: new CompositeBackend(StateBackend, {
    "/research/": new FilesystemBackend({ rootDir: folder, virtualMode: true }),
  }),
  systemPrompt: `You are a research expert.

1. Save the request in /research/request.md, and write down how you will search before you do.
2. Give each part of the question to a researcher; start independent ones together.
3. Write the report to /research/report.md: structured Markdown, and after each claim the page it is from, as [title](url).
4. Read the report again, and correct what no page supports.`,
  subagents: [
    {
      name: "researcher",
      description: "Finds facts on one question in the web and returns them with their sources.",
      systemPrompt: `You are a researcher. Search at most five times, and read the pages that matter with web_fetch; an excerpt alone is not a source. Return findings as a list, each with the title, the url and the day the page was retrieved. Say what you could not find.`,
    },
  ],
  limits: { maxIterations: 60, toolCalls: 100 },
});

const stream = await agent.stream(
  { messages: [{ role: "user", content: question }] },
  { streamMode: "updates", recursionLimit: 500 },
);
let answer = "";
for await (const update of stream) {
  for (const { messages = [] } of Object.values(update)) {
    for (const message of [messages].flat()) {
      for (const { name, args } of message.tool_calls ?? []) {
        console.log(
          `${name} ${args.query ?? args.url ?? args.description?.split("\n", 1)[0] ?? args.file_path ?? ""}`,
        );
      }
      answer = message.text || answer;
    }
  }
}
const report = join(folder, "report.md");
console.log(`\n${existsSync(report) ? readFileSync(report, "utf8") : answer}`);
