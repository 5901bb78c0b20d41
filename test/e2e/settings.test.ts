// @module-tag long
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect, openHome, openStdio, openWorld } from "../support/harness.ts";
import { CONTAINERS } from "../backends/sandbox/containers.ts";
import { answersOf, play, type Thought } from "../support/harness-brain.ts";

const systemOf = ({ request }: Thought): string =>
  request.messages
    .filter(({ role }) => role === "system")
    .map(({ text }) => text)
    .join("\n");
const skill = (name: string, description: string): string =>
  `---\nname: ${name}\ndescription: ${description}\n---\nRead on.\n`;

test("instructions from a setting and a file, skills of the workspace and of the user", async () => {
  const home = await openHome({
    think: play({ "Say hello": [{ text: "hello" }, { text: "again" }] }),
    files: {
      "skills/deploy/SKILL.md": skill("deploy", "from skills"),
      ".claude/skills/deploy/SKILL.md": skill("deploy", "from .claude/skills"),
      ".deepagent/skills/review/SKILL.md": skill("review", "of this workspace"),
    },
    env: { DEEPAGENT_SYSTEM_PROMPT: "You work for the harbour." },
  });
  const own = join(home.env["HOME"] ?? "", ".deepagent/skills");
  for (const name of ["review", "tides"]) {
    mkdirSync(join(own, name), { recursive: true });
    writeFileSync(join(own, name, "SKILL.md"), skill(name, "of this user"));
  }
  const file = join(home.env["HOME"] ?? "", "prompt.md");
  writeFileSync(file, "Write Danish.");
  const env = { ...home.env, DEEPAGENT_SYSTEM_PROMPT_FILE: file };
  const client = await connect(await openStdio({ ...home, env }), "v2-modern");
  await client.call("run_deep_agent", { task: "Say hello" });
  const [thought] = home.brain.thoughts;
  const prompt = thought === undefined ? "" : systemOf(thought);
  expect(prompt).toMatch(/^You work for the harbour\.\n\nWrite Danish\.\n/);
  expect(prompt).toContain("from .claude/skills");
  expect(prompt).not.toContain("from skills");
  expect(prompt).toContain("of this workspace");
  expect(prompt).toMatch(/tides.*of this user/);
  expect(prompt.match(/of this user/g)).toHaveLength(1);

  writeFileSync(file, "x".repeat(100_001));
  const failed = await client.call("run_deep_agent", { task: "Say hello once more" });
  expect(failed).toMatchObject({ isError: true });
  expect(failed.text).toContain("The file of systemPromptFile has more than 100000 characters");
});

test("hidden and read-only files, and rules for paths: the agent, resources and commands keep to them", async () => {
  const folder = await openHome({ think: () => ({ text: "" }) });
  const config = join(folder.dataDir, "..", "config.json");
  const rule = { operations: ["write"], paths: ["/workspace/docs/**"] };
  writeFileSync(config, JSON.stringify({ permissions: [rule] }));
  const calls = [
    { name: "ls", args: { path: "/workspace" } },
    { name: "read_file", args: { file_path: "/workspace/.env" } },
    { name: "write_file", args: { file_path: "/workspace/vendor/new.txt", content: "x" } },
    { name: "write_file", args: { file_path: "/workspace/docs/new.txt", content: "x" } },
  ];
  const rules = { DEEPAGENT_FILES_HIDE: "sensitive,*.pem", DEEPAGENT_FILES_READ_ONLY: "/vendor" };
  const world = await openWorld("stdio", {
    files: { ".env": "KEY=1", "site.pem": "key", "vendor/a.txt": "a", "docs/a.txt": "a" },
    env: { ...rules, DEEPAGENT_CONFIG: config, DEEPAGENT_APPROVALS_WRITE: "none" },
    think: play({ "Look around": [{ toolCalls: calls }, { text: "done" }] }),
  });
  const client = await world.connect("v2-modern");
  await client.call("run_deep_agent", { task: "Look around" });
  const last = world.brain.thoughts.at(-1);
  const [listed, secret, vendor, docs] = last === undefined ? [] : answersOf(last).map(({ text }) => text);
  expect(listed).toContain("/workspace/vendor/");
  expect(listed).not.toMatch(/\.env|\.pem/);
  expect(secret).toContain("Access to sensitive paths is forbidden");
  expect(vendor).toContain("Writes are not allowed under /workspace/vendor/new.txt");
  expect(docs).toMatch(/not permitted|denied|not allowed/i);
  const tools = last?.request.body["tools"] as { name: string }[];
  expect(tools.map(({ name }) => name)).not.toContain("execute");
  await expect(client.call("read_agent_file", { path: "/workspace/.env" })).resolves.toMatchObject({
    isError: true,
  });
});

test("commands run in a container, whose files are at /sandbox/", { tags: "podman" }, async () => {
  const sandbox = { provider: "docker", ...CONTAINERS, setupScript: "echo prepared > ready.txt" };
  const home = await openHome({ think: () => ({ text: "" }) });
  const config = join(home.dataDir, "..", "config.json");
  writeFileSync(config, JSON.stringify({ execute: { sandbox }, approvals: { execute: "unsandboxed" } }));
  const calls = [
    { name: "execute", args: { command: "cat ready.txt; ls /workspace; echo made > made.txt" } },
    { name: "read_file", args: { file_path: "/sandbox/made.txt" } },
    { name: "ls", args: { path: "/workspace" } },
  ];
  const world = await openWorld("stdio", {
    files: { "a.txt": "a" },
    env: { DEEPAGENT_CONFIG: config, DEEPAGENT_FILES_READ_ONLY: "/" },
    think: play({ "Make it": [...calls.map((call) => ({ toolCalls: [call] })), { text: "done" }] }),
  });
  const client = await world.connect("v2-modern");
  const result = await client.call("run_deep_agent", { task: "Make it" });
  expect(result).toMatchObject({ structured: { status: "completed", answer: "done" } });
  const [ran, read, listed] = world.brain.thoughts.slice(1).map((thought) => answersOf(thought)[0]?.text);
  expect(ran).toContain("prepared");
  expect(ran).not.toContain("a.txt");
  expect(read).toContain("made");
  expect(listed).toContain("/workspace/a.txt");
});
