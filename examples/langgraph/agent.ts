// The graph that langgraph.json names. The server brings the checkpointer and the store.
import { createDeepAgent } from "deepagent-mcp";
import { PlayedModel, results } from "../support/played-model.ts";

// With a real model: model: "anthropic:claude-sonnet-4-5-20250929"
const model = new PlayedModel(({ messages, tools }) => {
  const done = results(messages);
  if (!tools.includes("task")) return { text: "Spring tides come at full and new moon." };
  if (done.length === 0) {
    return {
      calls: [
        {
          name: "write_todos",
          args: {
            todos: [
              { content: "Ask the researcher", status: "in_progress" },
              { content: "Write the note", status: "pending" },
            ],
          },
        },
        { name: "task", args: { subagent_type: "researcher", description: "When are spring tides?" } },
      ],
    };
  }
  if (done.length === 2) {
    const content = done[1] ?? "";
    return { calls: [{ name: "write_file", args: { file_path: "/tides.md", content } }] };
  }
  return { text: "The note is in /tides.md." };
});

export const agent = createDeepAgent({
  model,
  checkpointer: true, // the server sets its own
  interruptOn: { write_file: true },
  subagents: [
    {
      name: "researcher",
      description: "Finds out facts.",
      systemPrompt: "You research.",
      interruptOn: false,
    },
  ],
});
