import { z } from "zod";
import { oneLine } from "../core/text.ts";
import { type Todo, defineTool } from "./tool.ts";

/** Models add fields of other programs, such as ids and priorities. They are dropped. */
const todo = z.object({
  content: z
    .string()
    .min(1)
    .max(2000, "Longer than 2000 characters: put details into a file")
    .describe("One step, as an instruction."),
  status: z.enum(["pending", "in_progress", "completed"]),
});

/**
 * Replaces the todo list of the thread. Two of these calls in one reply contradict each other; the agent's
 * todo middleware refuses both.
 */
export const writeTodosTool = defineTool({
  name: "write_todos",
  kind: "plan",
  description: "Replace the todo list; send the whole list, at most once per reply.",
  schema: z.strictObject({ todos: z.array(todo).describe("In order of work.") }),
  async handle({ todos }) {
    const of = (status: Todo["status"]): Todo[] => todos.filter((one) => one.status === status);
    const current = of("in_progress").map(({ content }) => oneLine(content, 100));
    const done = `${of("completed").length} of ${todos.length} completed`;
    const now = current.length > 0 ? `; in progress: ${current.join(", ")}` : "";
    // The model has just sent the whole list.
    const content = todos.length === 0 ? "Emptied the todo list" : `Updated the todo list: ${done}${now}`;
    return { content, artifact: { todos }, update: { todos } };
  },
});
