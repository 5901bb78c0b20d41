import { runProgramTool } from "../../tools/run-program.ts";
import { specTool } from "../calls/tool.ts";
import type { Middleware } from "../contracts/middleware.ts";

/** Programs that call the agent's tools: the tool `run_program`. */
export const programsMiddleware = (): Middleware => ({
  name: "ProgramsMiddleware",
  tools: [specTool(runProgramTool)],
});
