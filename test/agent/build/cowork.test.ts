import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { expect, it, onTestFinished } from "vitest";
import {
  buildAgent,
  type BuildAgentOptions,
  buildLlm,
  createLogger,
  getAgentState,
  PROFILES,
  resumeAgentInput,
  type ResumeInput,
  streamEvents,
  type WorkspaceAgent,
} from "../../../src/index.ts";
import { scriptedModel, type ScriptedToolCall } from "../../support/scripted-model.ts";
import { filesIn } from "../../support/files-in.ts";

const log = createLogger("silent");

function folders() {
  const home = filesIn();
  const workspaceDir = join(home, "project");
  mkdirSync(workspaceDir);
  return { home, workspaceDir, globalSkills: join(home, "skills") };
}

function build(options: BuildAgentOptions): WorkspaceAgent {
  const agent = buildAgent({ log, ...options });
  onTestFinished(() => agent.close());
  return agent;
}

async function events(agent: WorkspaceAgent, input: string | ResumeInput) {
  const seen = [];
  for await (const event of streamEvents(agent, input)) seen.push(event);
  return seen;
}

/** Makes these calls first, then answers. */
const calling = (...toolCalls: ScriptedToolCall[]) =>
  scriptedModel(({ messages }) =>
    messages.some((message) => ToolMessage.isInstance(message)) ? { text: "all done" } : { toolCalls },
  );

const write = (id: string, file_path: string): ScriptedToolCall => ({
  id,
  name: "write_file",
  args: { file_path, content: "hello\n" },
});

it("has the seven tools of its profile, a plan and delegation, and the prompt of its mode", async () => {
  const { workspaceDir, globalSkills } = folders();
  const model = scriptedModel(() => ({ text: "hello" }));
  await events(build({ workspaceDir, globalSkills, model }), "hi");
  await events(build({ workspaceDir, globalSkills, model, mode: "acp" }), "hi");
  const [cowork, acp] = model.requests;
  const files = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "execute"];
  expect(cowork?.tools.toSorted()).toEqual([...files, "task", "write_todos"].toSorted());
  expect(cowork?.messages[0]?.text).toContain(`work with a person on the files in ${workspaceDir}`);
  expect(acp?.messages[0]?.text).toContain(`coordinate work on the files in ${workspaceDir}`);
});

it("tells tokens and events, waits for a person, and goes on with a list of decisions", async () => {
  const { workspaceDir, globalSkills } = folders();
  const path = join(workspaceDir, "a.txt");
  const agent = build({ workspaceDir, globalSkills, model: calling(write("a", path)) });
  const paused = (await events(agent, "write")).at(-1);
  expect(paused).toMatchObject({
    kind: "paused",
    interrupts: [{ request: { actionRequests: [{ name: "write_file" }] } }],
  });
  expect(existsSync(path)).toBe(false);
  expect((await getAgentState(agent)).waiting).toHaveLength(1);

  const seen = await events(agent, resumeAgentInput([{ type: "approve" }]));
  expect(seen.map(({ kind }) => kind)).toEqual(
    expect.arrayContaining(["tool_finished", "file_changed", "token"]),
  );
  expect(seen.flatMap((event) => (event.kind === "token" ? [event.text] : [])).join("")).toBe("all done");
  expect(seen.at(-1)).toEqual({ kind: "finished", answer: "all done" });
  expect(readFileSync(path, "utf8")).toBe("hello\n");
  expect(await getAgentState(agent)).toMatchObject({ answer: "all done", waiting: [] });
});

it("tells the tokens and events of a subagent, each once, with its name", async () => {
  const { workspaceDir, globalSkills } = folders();
  const model = scriptedModel(({ messages }) => {
    const isSubagent = messages.some(({ text }) => text === "look");
    const isFirst = !messages.some((message) => ToolMessage.isInstance(message));
    if (isSubagent) return isFirst ? { toolCalls: [{ id: "ls", name: "ls", args: {} }] } : { text: "seen" };
    const args = { description: "look", subagent_type: "general-purpose" };
    return isFirst ? { toolCalls: [{ id: "task", name: "task", args }] } : { text: "end" };
  });
  const seen = await events(build({ workspaceDir, globalSkills, model }), "go");
  const tokens = seen.flatMap((event) => (event.kind === "token" ? [event] : []));
  expect(tokens.map(({ text }) => text)).toEqual(["seen", "end"]);
  expect(tokens[0]?.agent).toBe("general-purpose");
  const started = seen.flatMap((event) => (event.kind === "tool_started" ? [event.callId] : []));
  expect(started).toEqual(["task", "ls"]);
});

it("takes a map where several wait, some now and some later, also in a new process", async () => {
  const { workspaceDir, globalSkills } = folders();
  const [one, two] = [join(workspaceDir, "1"), join(workspaceDir, "2")];
  const checkpointer = new MemorySaver();
  const options = { workspaceDir, globalSkills, checkpointer, threadId: "t" };
  const make = () => build({ ...options, model: calling(write("a", one), write("b", two)) });
  await events(make(), "write both");

  const agent = make();
  await expect(events(agent, resumeAgentInput([{ type: "approve" }]))).rejects.toMatchObject({
    code: "SEVERAL_APPROVALS_PENDING",
  });
  const { waiting } = await getAgentState(agent);
  const idOf = (path: string) =>
    waiting.find(({ request }) => request.actionRequests[0]?.args["file_path"] === path)?.id ?? "";
  const rest = (await events(agent, resumeAgentInput({ [idOf(two)]: { type: "reject", message: "no" } }))).at(
    -1,
  );
  expect(rest).toMatchObject({ kind: "paused", interrupts: [{ id: idOf(one) }] });
  const approval = resumeAgentInput({ [idOf(one)]: { decisions: [{ type: "approve" }] } });
  expect((await events(make(), approval)).at(-1)).toMatchObject({ kind: "finished" });
  expect([existsSync(one), existsSync(two)]).toEqual([true, false]);
});

it("asks nobody without a person, and runs commands in the folder", async () => {
  const { workspaceDir, globalSkills } = folders();
  const model = calling({ id: "x", name: "execute", args: { command: "pwd > where" } });
  const agent = build({ workspaceDir, globalSkills, model, withHitl: false });
  expect((await events(agent, "go")).at(-1)).toMatchObject({ kind: "finished", answer: "all done" });
  expect(readFileSync(join(workspaceDir, "where"), "utf8").trim()).toBe(workspaceDir);
});

it("lets the model act 25 times for a task, then asks it for a report and says why it ended", async () => {
  const { workspaceDir, globalSkills } = folders();
  const toolCalls = [{ name: "ls", args: { path: workspaceDir } }];
  const model = scriptedModel(() => ({ toolCalls }));
  const last = (await events(build({ workspaceDir, globalSkills, model }), "go")).at(-1);
  expect(last).toMatchObject({ kind: "finished", stopReason: "max_iterations" });
  const results = model.requests.at(-1)?.messages.filter((message) => ToolMessage.isInstance(message));
  expect([results?.length, model.requests.length]).toEqual([25, 26]);
});

it.each(["deepcowork", "production"] as const)("workspace skills win over global: %s", async (profile) => {
  const { workspaceDir, globalSkills } = folders();
  const skill = (folder: string, name: string, description: string): void => {
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(
      join(folder, name, "SKILL.md"),
      `---\nname: ${name}\ndescription: ${description}\n---\nText\n`,
    );
  };
  skill(globalSkills, "review", "global review");
  skill(globalSkills, "plan", "global plan");
  skill(join(workspaceDir, "skills"), "review", "own review");
  const model = calling(write("a", "/skills/plan/SKILL.md"));
  const agent = build({ workspaceDir, globalSkills, model, profile, withHitl: false });
  await events(agent, "hi");
  const prompt = model.requests[0]?.messages[0]?.text ?? "";
  expect(prompt).toContain("own review");
  expect(prompt).toContain("global plan");
  expect(prompt).not.toContain("global review");
  expect(readFileSync(join(globalSkills, "plan/SKILL.md"), "utf8")).toContain("global plan");
});

it("keeps to the workspace in production, without commands", async () => {
  const { workspaceDir, globalSkills } = folders();
  const model = calling(write("a", "/workspace/a.txt"), write("b", "/notes.txt"));
  const agent = build({ workspaceDir, globalSkills, model, profile: "production", withHitl: false });
  await events(agent, "go");
  expect(model.requests[0]?.tools).not.toContain("execute");
  expect(readFileSync(join(workspaceDir, "a.txt"), "utf8")).toBe("hello\n");
  expect(Object.keys((await getAgentState(agent)).files)).toEqual(["/notes.txt"]);
  expect(PROFILES.production).toMatchObject({ maxFileSizeMb: 5, filesystem: { evictTokens: 10_000 } });
});

it.each<[string, object, string]>([
  ["a name of Python", { workspace_dir: "/x" }, "it is called 'workspaceDir' here"],
  ["no folder", {}, "buildAgent takes `workspaceDir`"],
  ["a mode", { workspaceDir: "/tmp", mode: "code" }, "as `mode` cowork or acp"],
  ["a profile", { workspaceDir: "/tmp", profile: "strict" }, "profiles are deepcowork, production"],
  ["a profile without gates", { workspaceDir: "/tmp", profile: {} }, "A profile needs `interruptOn`"],
])("refuses %s", (_what, options, problem) => {
  expect(() => buildAgent(options as BuildAgentOptions)).toThrow(problem);
});

it("builds a model by name, and says what is missing", async () => {
  expect((await buildLlm({ model: "offline" }))._llmType()).toBe("offline");
  await expect(buildLlm({ env: {} })).rejects.toMatchObject({ code: "model_not_configured" });
});

it.each([
  ["deepcowork", "cowork"],
  ["deepcowork", "acp"],
  ["production", "cowork"],
] as const)("with the profile %s and mode %s sees the folder that it was given", async (profile, mode) => {
  const { workspaceDir, globalSkills } = folders();
  writeFileSync(join(workspaceDir, "お茶.md"), "# お茶\n\nTODO: buy 茶 🍵\n");
  const model = await buildLlm({ model: "offline", log });
  const agent = build({ workspaceDir, globalSkills, model, profile, mode, withHitl: false });
  const answer = (await events(agent, "List every TODO. Change nothing.")).at(-1);
  expect(answer).toMatchObject({ kind: "finished", answer: expect.stringContaining("TODO: buy 茶 🍵") });
});
