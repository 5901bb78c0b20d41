/** Runs a program that calls the other tools. */
import { z } from "zod";
import { defined } from "../core/unknown.ts";
import { cutMiddle, displayText } from "../core/text.ts";
import { type ToolSpec, defineTool, toolError } from "./tool.ts";

/** Characters of a program that its approver is shown. */
const MAX_SHOWN = 20_000;

const programSchema = z.strictObject({
  source: z.string().min(1).max(100_000).describe("The body of an async JavaScript function."),
});

export const runProgramTool: ToolSpec<typeof programSchema> = defineTool({
  name: "run_program",
  // Its work is done by calls that are governed one by one.
  kind: "delegate",
  description: [
    "Run a JavaScript program that calls your tools, and get only what it returns and prints.",
    "Use it when the next call does not need your judgement: the same call for many items, a search whose results are filtered, counted or joined, a chain of calls.",
    "Each tool but task is an async function of `tools` that takes the same arguments and gives the text of its result, as in `await tools.grep({ pattern: 'TODO' })`; read_file gives the lines without numbers. A call that fails throws an Error with its text.",
    "Start independent calls together with Promise.all. Return a value, which comes back as JSON, and print with console.log.",
    "Calls that need approval wait for it as always. There are no modules, Intl, files or network but through the tools, no timers, 200 calls and 30 seconds besides them.",
  ].join(" "),
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
