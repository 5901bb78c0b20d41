import { Client } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { cleanUpWith } from "../runs/support.ts";
import { depsFor, inMemory } from "./support.ts";

test.each(["legacy", { pin: "2026-07-28" }] as const)("the delegate prompt in %j", async (mode) => {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(inMemory(depsFor(() => Promise.reject(new Error("a prompt needs no runs")))).modern());
  cleanUpWith(() => client.close());
  const { prompts } = await client.listPrompts();
  expect(prompts).toMatchObject([
    {
      name: "delegate",
      arguments: [{ name: "task", required: true }, { name: "context" }, { name: "result" }],
    },
  ]);
  const text = async (args: Record<string, string>): Promise<string> => {
    const { messages } = await client.getPrompt({ name: "delegate", arguments: args });
    const [message] = messages;
    return message?.content.type === "text" ? message.content.text : "";
  };
  const full = await text({ task: "audit deps", context: "npm only", result: "a table" });
  expect(full).toContain("Task: audit deps\nContext: npm only\nResult: a table");
  expect(await text({ task: "audit deps" })).not.toContain("Context:");
  await expect(client.getPrompt({ name: "delegate" })).rejects.toThrow("task");
});

test("commands of people are prompts, whose arguments become the task", async () => {
  const deps = depsFor(() => Promise.reject(new Error("a prompt needs no runs")));
  const fill = (given: string | Readonly<Record<string, string>>) => `Review ${JSON.stringify(given)}`;
  const commands = [
    { name: "git:review", description: "Reviews.", inputs: [], hint: "[pr]", fill },
    { name: "ask", description: "Asks.", inputs: ["who"], fill },
    { name: "delegate", description: "Not this one.", inputs: [], fill },
  ];
  const asked: string[] = [];
  const client = new Client({ name: "test", version: "1" });
  await client.connect(
    inMemory({ ...deps, commands: async (principal) => (asked.push(principal), commands) }).modern(),
  );
  cleanUpWith(() => client.close());
  const { prompts } = await client.listPrompts();
  expect(prompts.map((one) => [one.name, one.arguments?.map(({ name }) => name)])).toEqual([
    ["delegate", ["task", "context", "result"]],
    ["git:review", ["arguments"]],
    ["ask", ["who"]],
  ]);
  const text = JSON.stringify(await client.getPrompt({ name: "git:review", arguments: { arguments: "7" } }));
  expect(text).toContain("run_deep_agent, word for word:");
  expect(text).toContain("Review");
  expect(JSON.stringify(await client.getPrompt({ name: "ask", arguments: { who: "me" } }))).toContain("who");
  await expect(client.getPrompt({ name: "none" })).rejects.toThrow("There is no prompt 'none'");
  expect(new Set(asked)).toEqual(new Set(["local"]));
});

test("commands that cannot be read leave the other prompts", async () => {
  const deps = depsFor(() => Promise.reject(new Error("a prompt needs no runs")));
  const client = new Client({ name: "test", version: "1" });
  await client.connect(inMemory({ ...deps, commands: () => Promise.reject(new Error("broken")) }).modern());
  cleanUpWith(() => client.close());
  expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["delegate"]);
});
