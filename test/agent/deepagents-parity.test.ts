import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import * as deepagents from "deepagents";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../src/agent/build/create-deep-agent.ts";
import { scriptedSteps } from "../support/scripted-model.ts";

/** The same program with each library. */
const libraries = [
  ["deepagents", deepagents.createDeepAgent as unknown as typeof createDeepAgent],
  ["this library", createDeepAgent],
] as const;

const go = { messages: [new HumanMessage("go")] };

describe.each(libraries)("a program for deepagents, with %s", (_name, create) => {
  it("gets in stream mode `custom` what its tools write, and nothing else", async () => {
    const note = tool(
      (_args, config: LangGraphRunnableConfig) => {
        config.writer?.({ mine: 1 });
        return "noted";
      },
      { name: "note", description: "d", schema: z.object({}) },
    );
    const model = scriptedSteps([{ toolCalls: [{ name: "note", args: {} }] }, { text: "end" }]);
    const chunks: unknown[] = [];
    for await (const chunk of await create({ model, tools: [note] }).stream(go, { streamMode: "custom" }))
      chunks.push(chunk);
    expect(chunks).toEqual([{ mine: 1 }]);
  });

  it("may write to a path whose rule states no mode", async () => {
    const args = { file_path: "/a.md", content: "a" };
    const model = scriptedSteps([{ toolCalls: [{ name: "write_file", args }] }, { text: "end" }]);
    const permissions = [{ operations: ["write" as const], paths: ["/**"] }];
    const { files } = await create({ model, permissions }).invoke(go);
    expect(Object.keys(files)).toEqual(["/a.md"]);
  });
});
