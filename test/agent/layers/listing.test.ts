import { HumanMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import type { AgentState } from "../../../src/agent/contracts/state.ts";
import { loadAgentFiles } from "../../../src/agent/build/agent-files.ts";
import { assembleDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import folders from "../../../src/agent/layers/shared-folders.json" with { type: "json" };
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { withEvents } from "../../../src/agent/langgraph/step-of-task.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { callingOnce, scriptedModel } from "../../support/scripted-model.ts";
import { filesIn } from "../../support/files-in.ts";

const ROOM = 8000;
const limits = { listedCharacters: ROOM };

/** Runs an agent once; gives the first request as texts, and the warnings of the run. */
async function run(params: DeepAgentParams) {
  const model = scriptedModel(() => ({ text: "end" }));
  const agent = assembleDeepAgent({ model, ...params });
  const warnings: string[] = [];
  const stream = await agent.stream(
    { messages: [new HumanMessage("go")] },
    withEvents({ streamMode: "custom" as const }),
  );
  for await (const chunk of stream) {
    const { kind, message } = Object(Object(chunk).deepagent);
    if (kind === "warning") warnings.push(String(message));
  }
  const prompt = String(model.requests[0]?.messages[0]?.text);
  const task = String(agent.facts.tools.get("task")?.offered.description);
  const lines = (text: string) => text.split("\n").filter((line) => /^- [a-z0-9-]+: d/.test(line));
  return { prompt, task, warnings, skills: lines(prompt), agents: lines(task) };
}

const skill = (name: string, length = 900): string =>
  `---\nname: ${name}\ndescription: ${"d".repeat(length)}\n---\nx`;
const subagents = (count: number, length = 900): NonNullable<DeepAgentParams["subagents"]> =>
  Array.from({ length: count }, (_, index) => ({
    name: `a${index}`,
    description: "d".repeat(length),
    systemPrompt: "Work.",
    buildOnUse: true,
  }));
const many = (folder: string, count: number, length?: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${folder}/s${index}/SKILL.md`, skill(`s${index}`, length)]),
  );
const backendOf = (files: Record<string, string>) =>
  new FilesystemBackend({ rootDir: filesIn(files), virtualMode: true });
const sizeOf = (lines: readonly string[]): number => lines.join("\n").length;

describe("the lists of skills and subagents in a prompt", () => {
  it.each([
    [0, 0],
    [15, 100],
    [1500, 20],
    [1500, 900],
    [1500, 1024],
  ])("of %d with descriptions of %d characters have their room together", async (count, length) => {
    const backend = backendOf({ "skills/.keep": "", ...many("skills", count, length) });
    const found = await run({ backend, skills: ["/skills"], subagents: subagents(count, length), limits });
    expect(sizeOf(found.skills) + sizeOf(found.agents)).toBeLessThanOrEqual(ROOM);
    expect(found.skills.length).toBeLessThanOrEqual(100);
    expect(found.agents.length).toBeLessThanOrEqual(100);
    expect((found.prompt + found.task).length).toBeLessThan(ROOM + 12_000);
    if (count <= 15) {
      expect([found.skills.length, found.agents.length]).toEqual([count, count]);
      expect(found.warnings).toEqual([]);
      expect(found.prompt + found.task).not.toContain("exist than are listed");
      return;
    }
    expect(Math.min(sizeOf(found.skills), sizeOf(found.agents))).toBeGreaterThan(length === 20 ? 2000 : 2500);
    expect(found.prompt.match(/More skills exist than are listed here: .*`\/skills`\./g)).toHaveLength(1);
    expect(found.task.match(/More types exist than are listed here/g)).toHaveLength(1);
    expect(found.warnings).toEqual([
      expect.stringMatching(/^The prompt has no room for all skills: it lists \d+ of them/),
      expect.stringMatching(/^The prompt has no room for all subagents: it lists \d+ of them/),
    ]);
  });

  it("have the same bytes each time, and say no number", async () => {
    const backend = backendOf(many("skills", 200, 300));
    const params = { backend, skills: ["/skills"], subagents: subagents(50), limits };
    const [first, second] = [await run(params), await run(params)];
    expect([first.prompt, first.task]).toEqual([second.prompt, second.task]);
    expect(first.prompt + first.task).not.toMatch(/\b(200|50|51)\b/);
  });

  it("have those of earlier sources first, and a long one leaves room for the others", async () => {
    const own = { "own/zebra/SKILL.md": skill("zebra", 500), "own/long/SKILL.md": skill("long", 1024) };
    const backend = backendOf({ ...many("skills", 50, 300), ...own });
    const found = await run({ backend, skills: ["/own", "/skills"], limits: { listedCharacters: 1600 } });
    const names = found.skills.map((line) => /^- ([a-z0-9]+):/.exec(line)?.[1]);
    expect(names).toContain("long");
    expect(names.some((name) => name?.startsWith("s"))).toBe(true);
    expect(found.skills.map((line) => line)).toEqual([...found.skills].sort());
  });

  it("give all room to subagents where there are no skills", async () => {
    const found = await run({ subagents: subagents(50), limits });
    expect(sizeOf(found.agents)).toBeGreaterThan(ROOM - 1000);
  });

  it("have no limit of their own in the library", async () => {
    const backend = backendOf(many("skills", 150, 500));
    const found = await run({ backend, skills: ["/skills"], subagents: subagents(40) });
    expect([found.skills.length, found.agents.length]).toEqual([150, 40]);
    expect(found.warnings).toEqual([]);
  });
});

/** Runs an agent whose model calls one tool; gives the answer of the tool. */
async function toolAnswer(agent: ReturnType<typeof assembleDeepAgent>): Promise<string | undefined> {
  const { messages } = (await agent.invoke({ messages: [new HumanMessage("go")] })) as AgentState; // its own
  return messages.find(({ type }) => type === "tool")?.text;
}

it("a subagent that the prompt does not list can be started by its name", async () => {
  const model = scriptedModel(({ messages, call }) =>
    call === 0
      ? { toolCalls: [{ name: "task", args: { description: "x", subagent_type: "a49" } }] }
      : { text: messages.some(({ type }) => type === "tool") ? "end" : "from a49" },
  );
  const agent = assembleDeepAgent({ model, subagents: subagents(50), limits });
  expect(String(agent.facts.tools.get("task")?.offered.description)).not.toContain("a49");
  expect(await toolAnswer(agent)).toBe("from a49");
});

it("the answer to an unknown type names some types", async () => {
  const model = callingOnce({ name: "task", args: { description: "x", subagent_type: "none" } });
  const agent = assembleDeepAgent({ model, subagents: subagents(150, 10), limits });
  expect(await toolAnswer(agent)).toMatch(
    /the only allowed types are `general-purpose`, `a0`, .*, 101 more$/,
  );
});

it("a subagent that is built on its use says its mistakes then", async () => {
  const model = callingOnce({ name: "task", args: { description: "x", subagent_type: "broken" } });
  const broken = { name: "broken", description: "d", systemPrompt: "x", limits: { toolCalls: -1 } };
  expect(() => assembleDeepAgent({ model, subagents: [broken] })).toThrow(/limits\.toolCalls is -1/);
  const agent = assembleDeepAgent({ model, subagents: [{ ...broken, buildOnUse: true }] });
  expect(await toolAnswer(agent)).toContain("limits.toolCalls is -1");
});

it("of a folder with many agent files some are read, which the log says", async () => {
  const text = (name: string): string => `---\nname: ${name}\ndescription: d\n---\nWork.\n`;
  const files = Object.fromEntries(
    Array.from({ length: 250 }, (_, index) => [
      `.claude/agents/a${1000 + index}.md`,
      text(`a${1000 + index}`),
    ]),
  );
  const backend = backendOf({ ...files, ".deepagent/agents/own.md": text("own") });
  const lines: string[] = [];
  const agents = await loadAgentFiles(
    backend,
    folders.agents.project.map((folder) => `/${folder}`),
    createLogger("warn", (line) => void lines.push(line)),
  );
  expect(agents.map(({ name }) => name)).toEqual([
    ...Array.from({ length: 200 }, (_, index) => `a${1000 + index}`),
    "own",
  ]);
  expect(lines.map((line) => Object(JSON.parse(line)).event)).toEqual(["files_not_read"]);
});
