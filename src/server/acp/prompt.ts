/** Turns the blocks of a prompt into the text of a task. */
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { ContentBlock, PromptRequest } from "@agentclientprotocol/sdk";
import { orElse } from "../../core/errors.ts";
import { isInside } from "../../core/real-path.ts";
import { MAX_TASK } from "../../runs/run.ts";
import { fenced } from "../views/quoting.ts";
import { parsedUrl } from "../../core/unknown.ts";
import { z } from "zod";
import { criteriaProblem } from "../../core/criteria.ts";
import { displayText } from "../../core/text.ts";

/** Files of the folder are named by the path that the agent knows them by. */
export function taskOf(
  prompt: readonly ContentBlock[],
  cwd: string,
): { ok: true; text: string } | { ok: false; problem: string } {
  const parts: string[] = [];
  for (const block of prompt) {
    if (block.type === "text") parts.push(block.text);
    else if (block.type === "resource_link") parts.push(` ${placeText(block.uri, cwd)} `);
    else if (block.type === "resource" && "text" in block.resource) {
      const { uri, text } = block.resource;
      parts.push(`\n\n${placeText(uri, cwd)}:\n${fenced(text, "")}\n\n`);
    } else {
      const problem = `The prompt has a part of type "${block.type}", which this agent does not read. Send text, links to files or texts.`;
      return { ok: false, problem };
    }
  }
  const text = parts.join("").trim();
  if (text === "") return { ok: false, problem: "The prompt is empty. Write what the agent is to do." };
  if (text.length <= MAX_TASK) return { ok: true, text };
  const problem = `The prompt has more than ${MAX_TASK} characters. Put long texts into a file of the folder and name it.`;
  return { ok: false, problem };
}

function placeText(uri: string, cwd: string): string {
  const url = uri.startsWith("file:") ? parsedUrl(uri) : undefined;
  if (url === undefined) return uri;
  const lines = /^#L(\d+)(?:[:-]L?(\d+))?$/.exec(url.hash);
  const path = orElse(() => fileURLToPath(url), undefined);
  if (path === undefined) return uri;
  const place = isInside(cwd, path) ? `/workspace/${relative(cwd, path).split(sep).join("/")}` : path;
  if (lines === null) return place;
  return `${place} (lines ${lines[1]} to ${lines[2] ?? lines[1]})`;
}

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
