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
