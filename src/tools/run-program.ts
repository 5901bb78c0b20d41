/** Runs a program that calls the other tools. */
import { z } from "zod";
import { defined } from "../core/unknown.ts";
import { cutMiddle, displayText } from "../core/text.ts";
import { type ToolSpec, defineTool, toolError } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

/** Characters of a program that its approver is shown. */
const MAX_SHOWN = 20_000;

const programSchema = z.strictObject({
  source: z.string().min(1).max(100_000).describe("The body of an async JavaScript function."),
});

export const runProgramTool: ToolSpec<typeof programSchema> = defineTool({
  name: "run_program",
  // Its work is done by calls that are governed one by one.
  kind: "delegate",
  description: texts.runProgram,
  schema: programSchema,
  async handle({ source }, { runProgram }) {
    if (!runProgram) return toolError("Programs cannot run here; make the calls one by one.");
    return runProgram(source);
  },
  async preview({ source }, { compileProgram }) {
    const failure = await compileProgram?.(source);
    const isPart = source.length > MAX_SHOWN;
    return {
      kind: "command",
      summary: "Run a program that calls tools",
      detail: displayText(cutMiddle(source, MAX_SHOWN)),
      ...(isPart ? { isPart } : {}),
      ...defined({ failure }),
    };
  },
});
