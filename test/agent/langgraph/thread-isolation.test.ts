import { MemorySaver } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

it("threads that begin at the same time do not see each other's files", async () => {
  const write = { name: "write_file", args: { file_path: "/own.md", content: "x" } };
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.type === "tool" ? { text: "end" } : { toolCalls: [write] },
  );
  const agent = buildAgent({ checkpointer: new MemorySaver(), model });
  const threads = ["a", "b", "c"];
  await Promise.all(
    threads.map((thread) =>
      collect(agent, { kind: "task", task: "go" }, { threadId: thread, runId: thread }),
    ),
  );
  for (const thread of threads) {
    expect((await toolMessages(agent, thread)).map(({ status }) => status)).toEqual(["success"]);
  }
});
