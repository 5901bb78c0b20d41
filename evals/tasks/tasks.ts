import type { EvalTask } from "../task.ts";
import { AGENT_TASKS } from "./agents.ts";
import { FILE_TASKS } from "./files.ts";

/** All tasks; each has a name of its own. */
export const TASKS: readonly EvalTask[] = [...FILE_TASKS, ...AGENT_TASKS];
