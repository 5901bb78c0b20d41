/** Goals of an editor's runs: the command for people, and the field for programs. */
import type { AvailableCommand, PromptRequest } from "@agentclientprotocol/sdk";
import { z } from "zod";
import { criteriaProblem } from "../../core/criteria.ts";
import { displayText } from "../../core/text.ts";

export const GOAL_COMMAND: AvailableCommand = {
  name: "goal",
  description: "Have a judge check criteria before the run of your next message ends",
  input: { hint: "one criterion a line; empty: no goal" },
};

/** The criteria of a prompt that is the command, none if it takes the goal back; `undefined`: it is another prompt. */
export function goalCommand(text: string): string[] | undefined {
  const [, given] = /^\/goal(?:\s+([\s\S]*))?$/.exec(text) ?? [undefined, undefined];
  if (given === undefined && text !== "/goal") return undefined;
  return (given ?? "")
    .split("\n")
    .map((line) => line.trim().replace(/^[-*] +/, ""))
    .filter((line) => line !== "");
}

export function goalReply(criteria: readonly string[]): { isTaken: boolean; text: string } {
  if (criteria.length === 0) return { isTaken: true, text: "The run of your next message has no goal." };
  const problem = criteriaProblem(criteria);
  if (problem !== undefined) return { isTaken: false, text: `The goal was not taken. ${problem}` };
  const list = criteria.map((criterion) => `- ${displayText(criterion)}`).join("\n");
  const text = `Your next message is the task. Before its run ends, a judge checks:\n${list}`;
  return { isTaken: true, text };
}

const Meta = z.looseObject({
  "deepagent-mcp": z.looseObject({ goal: z.array(z.string()).optional() }).optional(),
});

/** Reads the goal that a program sends with a prompt; `ok: false`: it has another form. */
export function goalOf({ _meta }: Pick<PromptRequest, "_meta">) {
  const read = Meta.safeParse(_meta ?? {});
  if (read.success) return { ok: true as const, goal: read.data["deepagent-mcp"]?.goal };
  return { ok: false as const, problem: 'The goal in _meta["deepagent-mcp"].goal must be a list of texts.' };
}
