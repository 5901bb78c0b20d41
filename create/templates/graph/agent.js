// The agent: its model, tool, files, skills and memory.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import {
  CompositeBackend,
  createDeepAgent,
  FilesystemBackend,
  PolicyBackend,
  StateBackend,
} from "deepagent-mcp";
import { z } from "zod";
import { countWords } from "./count-words.js";

const inProject = (name) => join(import.meta.dirname, name);
if (existsSync(inProject(".env"))) process.loadEnvFile(inProject(".env"));

const folder = (name) => new FilesystemBackend({ rootDir: inProject(name), virtualMode: true });

const countWordsTool = tool(({ text }) => `${countWords(text)} words`, {
  name: "count_words",
  description: "Counts the words of a text.",
  schema: z.object({ text: z.string() }),
});

/** Makes the agent. `options` are parameters of createDeepAgent that replace those here. */
export const createAgent = (options = {}) =>
  createDeepAgent({
    model: process.env.DEEPAGENT_MODEL || "offline",
    systemPrompt: "You look after the notes in /workspace/.",
    tools: [countWordsTool],
    backend: new CompositeBackend(new StateBackend(), {
      "/workspace/": folder("workspace"),
      "/skills/": new PolicyBackend(folder("skills"), { readOnly: true }),
    }),
    memory: ["/workspace/AGENTS.md"],
    skills: ["/skills/"],
    interruptOn: { write_file: true, edit_file: true },
    ...options,
  });
