import { z } from "zod";

const Todo = z.object({ content: z.string(), status: z.enum(["pending", "in_progress", "completed"]) });

const Agent = z.object({
  /** Names on the way down, such as `researcher › general-purpose`. */
  agent: z.string(),
  description: z.string(),
  status: z.enum(["working", "completed", "failed"]),
  step: z.string(),
  tool_calls: z.number(),
});

/** What the terminal shows of a run: the part it reads of the resource `deepagent://runs/{run_id}`. */
export const RunPicture = z.object({
  run_id: z.string(),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  activity: z.string(),
  answer: z.string().optional(),
  failure_reason: z.string().optional(),
  failure_message: z.string().optional(),
  todos: z.array(Todo),
  agents: z.array(Agent),
  files_changed: z.array(z.string()),
  usage: z.object({ input_tokens: z.number(), output_tokens: z.number() }),
});
export type RunPicture = z.output<typeof RunPicture>;
export type AgentPicture = RunPicture["agents"][number];
