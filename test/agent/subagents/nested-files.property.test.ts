import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import fc from "fast-check";
import { expect, it } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { collect, paused, toolMessages, resumeAgentInput } from "../../support/run-agent.ts";
import { scriptedModel, type ScriptedToolCall } from "../../support/scripted-model.ts";
import { attempts } from "../../support/effort.ts";

/** Subagents that delegate on, or change one line of `/f.md`, asked about first or not. */
type Tree = { parts: Tree[] } | { line: number; gated: boolean };

const leaf = fc.record({ line: fc.nat(3), gated: fc.boolean() });
const tree: fc.Arbitrary<Tree> = fc.oneof(
  { depthSize: "small" },
  leaf,
  fc.record({ parts: fc.array(leaf, { minLength: 1, maxLength: 3 }) }),
);
const trees = fc.array(fc.oneof(tree, fc.record({ parts: fc.array(tree, { minLength: 1, maxLength: 2 }) })), {
  minLength: 2,
  maxLength: 3,
});

const original = ["line 0", "keep", "line 1", "keep", "line 2", "keep", "line 3"].join("\n");

const isLeaf = (one: Tree): one is Extract<Tree, { line: number }> => "line" in one;

/** Names of the leaves below, as their ids say where they are. */
const leavesOf = (name: string, one: Tree): string[] =>
  isLeaf(one) ? [name] : one.parts.flatMap((part, index) => leavesOf(`${name}.${index}`, part));

const delegate = (name: string, one: Tree): ScriptedToolCall => ({
  id: name,
  name: "task",
  args: { description: JSON.stringify({ name, one }), subagent_type: "general-purpose" },
});

/** The calls of a subagent with this task. */
function callsOf({ name, one }: { name: string; one: Tree }): ScriptedToolCall[] {
  if (!isLeaf(one)) return one.parts.map((part, index) => delegate(`${name}.${index}`, part));
  const args = { file_path: "/f.md", old_string: `line ${one.line}`, new_string: `<${name}>` };
  return [{ id: `${name}${one.gated ? "?" : ""}`, name: "edit_file", args }];
}

const model = (given: Tree[]) =>
  scriptedModel(({ messages }) => {
    const results = messages.filter((message) => ToolMessage.isInstance(message)).length;
    const task = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "";
    if (task !== "go") {
      // A description that this test wrote.
      return results > 0 ? { text: "report" } : { toolCalls: callsOf(JSON.parse(task) as never) };
    }
    if (results === 0) {
      const args = { file_path: "/f.md", content: original };
      return { toolCalls: [{ id: "w", name: "write_file", args }] };
    }
    return results === 1
      ? { toolCalls: given.map((one, index) => delegate(`${index}`, one)) }
      : { text: "end" };
  });

it("whatever subagents at any depth change at the same time, over pauses and processes, nothing is lost", async () => {
  await fc.assert(
    fc.asyncProperty(trees, fc.infiniteStream(fc.nat()), async (given, picks) => {
      const checkpointer = new MemorySaver();
      // A process of its own for each answer: only the checkpoints are shared.
      const agent = () =>
        buildAgent({
          checkpointer,
          model: model(given),
          limits: { subagentDepth: 3 },
          interruptOn: { edit_file: { when: ({ id }: { id: string }) => id.endsWith("?") } },
        });
      let events = await collect(agent(), { kind: "task", task: "go" });
      for (let open = openIn(events); open.length > 0; open = openIn(events)) {
        const { value = 0 } = picks.next();
        const id = open[value % open.length]?.id ?? "";
        const answer = { decisions: [{ type: "approve" as const }] };
        events = await collect(agent(), resumeAgentInput({ [id]: answer }));
      }
      expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
      const { files } = await agent().snapshot("t1");
      const texts = Object.values(files).map((file) => String(file?.content));
      for (const name of given.flatMap((one, index) => leavesOf(`${index}`, one))) {
        expect(texts.some((text) => text.includes(`<${name}>`))).toBe(true);
      }
      for (const text of texts) expect(text.split("keep")).toHaveLength(4);
      const results = await toolMessages(agent());
      expect(results.map(({ tool_call_id }) => tool_call_id)).toEqual([
        "w",
        ...given.map((_, index) => `${index}`),
      ]);
      expect(results.every(({ status }) => status === "success")).toBe(true);
    }),
    attempts(12),
  );
});

const openIn = (events: Awaited<ReturnType<typeof collect>>) =>
  events.at(-1)?.kind === "paused" ? paused(events) : [];
