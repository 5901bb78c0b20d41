import { AIMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, InMemoryStore, INTERRUPT, isInterrupted, MemorySaver } from "@langchain/langgraph";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createMiddleware } from "langchain";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import {
  CompositeBackend,
  createDeepAgent,
  FilesystemBackend,
  type HitlRequest,
  LocalShellBackend,
  StateBackend,
  StoreBackend,
} from "../../src/index.ts";
import { scriptedModel, scriptedSteps } from "../support/scripted-model.ts";
import { wireServer } from "../support/wire-server.ts";
import { folder, results, said, tavilySearch, thinkTool } from "./support.ts";

/**
 * The examples with which deep agents are described to programmers, in this library's words: the names of the tests
 * are the headings.
 */
const config = { configurable: { thread_id: "user_123" } };
const report = { name: "write_file", args: { file_path: "/research/report.md", content: "# 트렌드\n" } };

test("basic use: the default model, a model by name, a tool and a prompt", async () => {
  expect(createDeepAgent().getName()).toBe("deepagent");
  const server = await wireServer(({ messages }) =>
    messages.some(({ toolResults }) => toolResults.length > 0)
      ? { text: "끝" }
      : { toolCalls: [{ id: "a", name: "my_search", args: { query: "조수" } }] },
  );
  for (const [name, value] of Object.entries(server.env("openai"))) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const mySearch = tool(({ query }) => `검색 결과: ${query}`, {
    name: "my_search",
    description: "웹 검색을 수행합니다.",
    schema: z.object({ query: z.string() }),
  });
  const agent = createDeepAgent({
    model: "openai:gpt-4.1",
    tools: [mySearch],
    systemPrompt: "당신은 리서치 전문가입니다.",
  });
  const { messages } = await agent.invoke(said("찾아줘"));
  expect(results(messages)).toEqual(["검색 결과: 조수"]);
  expect(messages.at(-1)?.text).toBe("끝");
  expect(JSON.stringify(server.requests[0]?.body)).toContain("당신은 리서치 전문가입니다.");
});

test("system_prompt: blocks of a SystemMessage are kept, and the built-in prompt follows", async () => {
  const model = scriptedSteps([{ text: "네" }]);
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const systemPrompt = new SystemMessage({
    content: [{ type: "text", text: "당신은 UI 디자이너입니다." }, image],
  });
  await createDeepAgent({ model, systemPrompt }).invoke(said("안녕"));
  const [system] = model.requests[0]?.messages ?? [];
  const [first, second, ...builtIn] = z.array(z.record(z.string(), z.unknown())).parse(system?.content);
  expect([first, second]).toEqual([{ type: "text", text: "당신은 UI 디자이너입니다." }, image]);
  expect(builtIn[0]?.["text"]).toMatch(/^You are a deep agent/);
});

test("middleware: a layer that logs around the model's calls", async () => {
  const lines: string[] = [];
  const logging = createMiddleware({
    name: "LoggingMiddleware",
    wrapModelCall: async (request, handler) => {
      lines.push(`LLM 호출: ${request.messages.length} 메시지`);
      const response = await handler(request);
      lines.push(`응답: ${AIMessage.isInstance(response) ? response.text.slice(0, 100) : ""}...`);
      return response;
    },
  });
  const agent = createDeepAgent({ model: scriptedSteps([{ text: "안녕하세요" }]), middleware: [logging] });
  await agent.invoke(said("안녕"));
  expect(lines).toEqual(["LLM 호출: 1 메시지", "응답: 안녕하세요..."]);
});

test("the interface of a layer: state, tools, beforeAgent, wrapModelCall, wrapToolCall", async () => {
  const echo = tool(({ text }) => text, {
    name: "echo",
    description: "Says it again",
    schema: z.object({ text: z.string() }),
  });
  const seen: string[] = [];
  const layer = createMiddleware({
    name: "Everything",
    stateSchema: z.object({ visits: z.number().default(0) }),
    tools: [echo],
    beforeAgent: ({ visits }) => ({ visits: visits + 1 }),
    wrapModelCall: (request, handler) => handler({ ...request, systemPrompt: "짧게 답하세요." }),
    wrapToolCall: async (request, handler) => {
      seen.push(request.toolCall.name);
      return handler(request);
    },
  });
  const model = scriptedSteps([{ toolCalls: [{ name: "echo", args: { text: "야호" } }] }, { text: "끝" }]);
  const result = await createDeepAgent({ model, middleware: [layer] }).invoke(said("메아리"));
  expect({ seen, told: results(result.messages) }).toEqual({ seen: ["echo"], told: ["야호"] });
  expect(result).toMatchObject({ visits: 1 });
  expect(model.requests[0]?.messages[0]?.text).toBe("짧게 답하세요.");
});

test("a call that was cut off is answered with the words of PatchToolCallsMiddleware", async () => {
  const model = scriptedSteps([{ text: "계속" }]);
  const call = { id: "dangling", name: "ls", args: {}, type: "tool_call" as const };
  await createDeepAgent({ model }).invoke({
    messages: [
      { role: "user", content: "보여줘" },
      new AIMessage({ content: "", tool_calls: [call] }),
      { role: "user", content: "그만" },
    ],
  });
  const answer = model.requests[0]?.messages.find((message) => ToolMessage.isInstance(message));
  expect(answer).toMatchObject({ tool_call_id: "dangling" });
  expect(answer?.text).toMatch(/cancelled|did not complete/);
});

test("three subagents at once, each with its assignment and nothing else", async () => {
  const subjects = ["Python 조사", "JavaScript 조사", "Rust 조사"];
  const model = scriptedModel(({ messages }) => {
    const texts = messages.filter(({ type }) => type === "human").map(({ text }) => text);
    if (subjects.some((subject) => texts.some((text) => text.includes(subject))))
      return { text: `답: ${texts.join()}` };
    if (messages.some((message) => ToolMessage.isInstance(message))) return { text: "비교 끝" };
    const toolCalls = subjects.map((description) => ({
      name: "task",
      args: { description, subagent_type: "general-purpose" },
    }));
    return { toolCalls };
  });
  const { messages } = await createDeepAgent({ model }).invoke(said("세 언어를 비교해줘"));
  expect(results(messages)).toEqual(subjects.map((subject) => expect.stringContaining(`답: ${subject}`)));
  expect(results(messages).join()).not.toContain("비교해줘");
});

test("a team: researcher, coder and reviewer, with tools and a model of their own", async () => {
  const own = scriptedSteps([
    { toolCalls: [{ name: "tavily_search", args: { query: "에이전트" } }] },
    { text: "출처와 함께 정리했습니다." },
  ]);
  const model = scriptedSteps([
    { toolCalls: [{ name: "task", args: { description: "자료 수집", subagent_type: "researcher" } }] },
    { toolCalls: [{ name: "task", args: { description: "구현", subagent_type: "coder" } }] },
    { text: "구현했습니다." },
    { text: "모두 끝났습니다." },
  ]);
  const agent = createDeepAgent({
    model,
    subagents: [
      {
        name: "researcher",
        description: "심층 웹 리서치가 필요할 때 사용",
        systemPrompt: "당신은 리서치 전문가입니다.",
        tools: [tavilySearch, thinkTool],
        model: own,
      },
      {
        name: "coder",
        description: "코드 작성이나 기술 구현이 필요할 때 사용",
        systemPrompt: "당신은 시니어 개발자입니다.",
        tools: [],
      },
      { name: "reviewer", description: "검토가 필요할 때 사용", systemPrompt: "당신은 QA 전문가입니다." },
    ],
    systemPrompt: "당신은 프로젝트 매니저입니다.",
  });
  const { messages } = await agent.invoke(said("만들어줘"));
  expect(results(messages)).toEqual([
    expect.stringContaining("출처와 함께"),
    expect.stringContaining("구현했습니다."),
  ]);
  expect(own.requests[0]?.tools).toContain("tavily_search");
  expect(model.requests[2]?.tools).not.toContain("tavily_search");
  expect(model.requests[2]?.tools).toContain("write_file");
});

test("the research agent keeps request and report in its folder", async () => {
  const rootDir = folder();
  const backend = new CompositeBackend(StateBackend, {
    "/research/": new FilesystemBackend({ rootDir, virtualMode: true }),
  });
  const request = { file_path: "/research/request.md", content: "2024년 AI 에이전트 트렌드\n" };
  const model = scriptedSteps([
    { toolCalls: [{ name: "write_file", args: request }] },
    { toolCalls: [{ name: "think_tool", args: { reflection: "먼저 무엇을?" } }] },
    { toolCalls: [{ name: "tavily_search", args: { query: "AI 에이전트 2024" } }] },
    { toolCalls: [report] },
    { text: "보고서를 썼습니다." },
  ]);
  const agent = createDeepAgent({
    model,
    tools: [tavilySearch, thinkTool],
    backend,
    systemPrompt: "당신은 리서치 전문가입니다.",
  });
  const { messages } = await agent.invoke(said("2024년 AI 에이전트 트렌드 조사해줘"));
  expect(results(messages).slice(1, 3)).toEqual(["생각이 기록되었습니다.", "결과: AI 에이전트 2024"]);
  expect(readFileSync(join(rootDir, "report.md"), "utf8")).toBe("# 트렌드\n");
  expect(readFileSync(join(rootDir, "request.md"), "utf8")).toBe(request.content);
});

test("interrupt_on: true, an older configuration, false and a condition; stream tells the interrupt", async () => {
  const asked: string[] = [];
  const rootDir = folder();
  const backend = new LocalShellBackend({ rootDir, virtualMode: true });
  onTestFinished(() => backend.close());
  const model = scriptedSteps([
    {
      toolCalls: [
        { id: "w", name: "write_file", args: { file_path: "/a.txt", content: "가" } },
        { id: "x", name: "execute", args: { command: "echo 나" } },
        { id: "t", name: "task", args: { description: "delete all", subagent_type: "general-purpose" } },
      ],
    },
    { text: "끝" },
  ]);
  const agent = createDeepAgent({
    model,
    backend,
    checkpointer: new MemorySaver(),
    interruptOn: {
      write_file: true,
      execute: { type: "tool", action_description: "쉘 명령 실행" },
      ls: false,
      task: { requires_approval: ({ description }) => String(description).includes("delete") },
    },
  });
  const decisions: Record<string, unknown> = {};
  for await (const event of await agent.stream(said("해줘"), { ...config, streamMode: "updates" })) {
    if (!isInterrupted<HitlRequest>(event)) continue;
    for (const { id = "", value } of event[INTERRUPT]) {
      const actions = value?.actionRequests ?? [];
      asked.push(...actions.map(({ name, description }) => `${name}: ${description}`));
      const given = actions.map(({ name }) => ({ type: name === "write_file" ? "approve" : "reject" }));
      decisions[id] = { decisions: given };
    }
  }
  expect(asked.toSorted()).toEqual([
    expect.stringContaining("execute: 쉘 명령 실행"),
    expect.stringContaining("task: "),
    expect.stringContaining("write_file: "),
  ]);
  const { messages } = await agent.invoke(new Command({ resume: decisions }), config);
  expect(messages.at(-1)?.text).toBe("끝");
  expect(readFileSync(join(rootDir, "a.txt"), "utf8")).toBe("가");
});

test("long-term memory: what a thread keeps below /memories/ another one reads", async () => {
  const store = new InMemoryStore();
  const note = { file_path: "/memories/facts.txt", content: "바다" };
  const model = scriptedSteps([
    { toolCalls: [{ name: "write_file", args: note }] },
    { text: "기억했습니다." },
    { text: "안녕이라고 했습니다." },
    { toolCalls: [{ name: "read_file", args: { file_path: note.file_path } }] },
    { text: "읽었습니다." },
  ]);
  const agent = createDeepAgent({
    model,
    checkpointer: new MemorySaver(),
    store,
    backend: new CompositeBackend(StateBackend, { "/memories/": StoreBackend }),
  });
  await agent.invoke(said("안녕"), config);
  await agent.invoke(said("방금 뭐라고 했어?"), config);
  expect(model.requests[2]?.messages.map(({ text }) => text)).toContain("안녕");
  const { messages } = await agent.invoke(said("찾아봐"), { configurable: { thread_id: "other" } });
  expect(results(messages)[0]).toContain("바다");
});

test("skills and AGENTS.md from a folder of this machine", async () => {
  const rootDir = folder();
  mkdirSync(join(rootDir, "skills/web-research"), { recursive: true });
  writeFileSync(
    join(rootDir, "skills/web-research/SKILL.md"),
    "---\nname: web-research\ndescription: 웹을 조사한다\n---\n본문은 나중에 읽는다.\n",
  );
  writeFileSync(join(rootDir, "AGENTS.md"), "# 에이전트 지침\n- PEP 8 준수\n");
  const model = scriptedSteps([{ text: "네" }]);
  const agent = createDeepAgent({
    model,
    skills: ["./skills/"],
    memory: ["./AGENTS.md"],
    backend: new FilesystemBackend({ rootDir }),
  });
  await agent.invoke(said("시작"));
  const prompt = model.requests[0]?.messages[0]?.text ?? "";
  expect(prompt).toContain("웹을 조사한다");
  expect(prompt).not.toContain("본문은 나중에");
  expect(prompt).toContain("- PEP 8 준수");
  expect(prompt).toContain("<agent_memory>");
});

test("watching it: name, debug and a drawing of the graph", async () => {
  const lines: string[] = [];
  const log = { debug: (event: string) => lines.push(event), info() {}, warn() {}, error() {} };
  const agent = createDeepAgent({
    model: scriptedSteps([{ text: "네" }]),
    debug: true,
    name: "ResearchAgent",
    log,
  });
  await agent.invoke(said("안녕"));
  expect(lines.length).toBeGreaterThan(0);
  expect(agent.getName()).toBe("ResearchAgent");
  expect((await agent.getGraphAsync()).drawMermaid()).toContain("graph TD");
});

test("production: a folder with a limit, small results, gates", async () => {
  const rootDir = folder();
  writeFileSync(join(rootDir, "large.txt"), `${"가나다라 ".repeat(20)}\n`.repeat(2000));
  const model = scriptedSteps([
    { toolCalls: [{ name: "grep", args: { pattern: "나다", path: "/workspace", output_mode: "content" } }] },
    { toolCalls: [report] },
  ]);
  const agent = createDeepAgent({
    model,
    backend: new CompositeBackend(StateBackend, {
      "/workspace/": new FilesystemBackend({ rootDir, virtualMode: true, maxFileSizeMb: 5 }),
    }),
    filesystem: { evictTokens: 10_000 },
    interruptOn: { execute: true, write_file: true },
    checkpointer: new MemorySaver(),
  });
  const state = await agent.invoke(said("찾아줘"), config);
  expect(results(state.messages)[0]?.length).toBeLessThan(40_000);
  expect(Object.keys(state.files ?? {})).toEqual([expect.stringMatching(/^\/large_tool_results\//)]);
  expect(state).toMatchObject({ __interrupt__: [{ value: { actionRequests: [{ name: "write_file" }] } }] });
});
