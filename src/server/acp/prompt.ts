/** Turns the blocks of a prompt into the text of a task. */
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import { orElse } from "../../core/errors.ts";
import { isInside } from "../../core/real-path.ts";
import { MAX_TASK } from "../../runs/run.ts";
import { fenced } from "../views/quoting.ts";
import { parsedUrl } from "../../core/parsed-url.ts";

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
