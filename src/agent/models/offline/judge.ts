/** The offline model as a judge: it follows fixed rules, so it leaves every criterion to a person. */
import type { BindToolsInput } from "@langchain/core/language_models/chat_models";
import { z } from "zod";
import { FINDINGS } from "../verdicts.ts";
import type { Step } from "./conversation.ts";

const Tool = z.object({
  function: z.object({ name: z.literal(FINDINGS), parameters: z.object({ required: z.array(z.string()) }) }),
});

const UNCERTAIN = {
  evidence: "The offline model follows fixed rules and cannot judge; a person has to look.",
  verdict: "uncertain",
  missing: "",
};

/** The findings about all criteria; `undefined` if the model is not asked for any. */
export function judgeStep(tools: readonly BindToolsInput[]): Step | undefined {
  const asked = tools.flatMap((tool) => Tool.safeParse(tool).data ?? []).at(0);
  if (asked === undefined) return undefined;
  const args = Object.fromEntries(asked.function.parameters.required.map((name) => [name, UNCERTAIN]));
  return { text: "", calls: [{ name: FINDINGS, args }] };
}
