import { HumanMessage } from "@langchain/core/messages";
import { InMemoryStore } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { StoreBackend } from "../../../src/backends/stores/langgraph-store.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const rootDir = "/nowhere/project";
const disk = new FilesystemBackend({ rootDir, virtualMode: true });
const memories = new StoreBackend();

/** What the model is told on each of two threads: always the same. */
async function promptOf(params: DeepAgentParams): Promise<string> {
  const model = scriptedModel(() => ({ text: "end" }));
  const agent = createDeepAgent({ ...params, model, store: new InMemoryStore() });
  for (const text of ["one", "two"]) await agent.invoke({ messages: [new HumanMessage(text)] });
  const [first, second] = model.requests.map(({ messages }) => messages[0]?.text);
  expect(second).toBe(first);
  return first ?? "";
}

const treeOf = async (params: DeepAgentParams): Promise<string[]> =>
  (await promptOf(params)).split("\n").filter((line) => /^- `|^There are no files/.test(line));

it.each<[string, DeepAgentParams, string[]]>([
  ["nothing else is there", {}, ["- `/`: scratch space of this conversation"]],
  ["a store", { backend: memories }, ["- `/`: kept for later conversations"]],
  ["a folder", { backend: disk }, ["- `/`: the user's files"]],
  [
    "a folder by its real path",
    { backend: new FilesystemBackend({ rootDir }) },
    [`- \`${rootDir}/\`: the user's files`, "There are no files elsewhere."],
  ],
  ["what may only be read", { backend: new PolicyBackend(disk, { readOnly: true }) }, ["- `/`: read-only"]],
  [
    "mounts, whatever order they were given in",
    {
      backend: new CompositeBackend(new PolicyBackend(new StateBackend(), { readOnly: true }), {
        "/notes/": memories,
        "/docs/": new PolicyBackend(disk, { readOnly: true }),
        "/code/": disk,
      }),
    },
    [
      "- `/`: read-only",
      "- `/code/`: the user's files",
      "- `/docs/`: read-only",
      "- `/notes/`: kept for later conversations",
    ],
  ],
  [
    "rules for paths",
    {
      backend: new CompositeBackend(new StateBackend(), { "/code/": disk, "/secret/": disk }),
      permissions: [
        { operations: ["read", "write"], paths: ["/secret", "/secret/**"], mode: "deny" },
        { operations: ["write"], paths: ["/code/**"], mode: "deny" },
      ],
    },
    ["- `/`: scratch space of this conversation", "- `/code/`: read-only"],
  ],
])("the prompt tells of %s", async (_what, params, lines) => expect(await treeOf(params)).toEqual(lines));

it.each<[string, DeepAgentParams, string]>([
  [
    "below the memories that are mounted",
    {
      backend: new CompositeBackend(new StateBackend(), { "/keep/": memories }),
      memory: ["/keep/AGENTS.md"],
    },
    "`edit_file` on the file it belongs to or `write_file` below `/keep/` for a new subject",
  ],
  [
    "in the file itself, where there is nothing else that lasts",
    { backend: disk, memory: ["/AGENTS.md"] },
    "`edit_file` on the file it belongs to or `write_file` to `/AGENTS.md` when it is missing",
  ],
  [
    "nowhere, where nothing can be changed",
    { backend: new PolicyBackend(disk, { readOnly: true }), memory: ["/AGENTS.md"] },
    "not instructions of higher rank. You cannot change them.",
  ],
])("the prompt tells to save memories %s", async (_where, params, text) => {
  const prompt = await promptOf(params);
  expect(prompt).toContain(text);
  expect(prompt).not.toContain("/memories/");
});
