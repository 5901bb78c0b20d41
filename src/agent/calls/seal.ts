/** Digests of calls: an approval counts for the call as shown, and for later calls only if they are the same. */
import { createHash } from "node:crypto";
import type { ToolCall } from "@langchain/core/messages/tool";
import { canonicalJson } from "../../core/json.ts";
import { displayName, oneLine } from "../../core/text.ts";
import type { BoundPreview } from "../../tools/tool.ts";
import type { AgentTool } from "../contracts/middleware.ts";
import type { SameCalls } from "../../tools/request.ts";

/** Binds an approval to the call and, if its tool can predict it, to the effect of the call. */
export function sealOf({ name, args }: ToolCall, preview?: BoundPreview): string {
  const call = digest([name, args]);
  if (preview?.effect === undefined) return call;
  return `${call}.${digest([preview.summary, preview.place, preview.effect])}`;
}

export const digest = (facts: unknown): string => keyOf(facts).slice(0, 22);

export const callOf = (seal: string): string => seal.split(".", 1)[0] ?? "";

/** Questions of earlier versions are sealed without the effect. */
export const isSame = (shown: string, now: string): boolean => shown === now || shown === callOf(now);

/**
 * Later calls that count as the same as this one: those that its tool names, changes of the same file by the same tool,
 * else only equal ones with the same effect, which includes whether a sandbox confines a command.
 */
export function sameCalls(tool: AgentTool, args: Record<string, unknown>, preview: BoundPreview): SameCalls {
  const name = oneLine(displayName(tool.name), 64);
  if (preview.same) return { key: keyOf([tool.name, ...preview.same.key]), text: preview.same.text };
  const path = tool.kind === "write" ? tool.pathOf(args) : undefined;
  if (path !== undefined) {
    const act = { write_file: "write to", edit_file: "edit of" }[tool.name] ?? `${name} of`;
    const text = `any later ${act} ${preview.destination ?? displayName(path)}`;
    // If links lead somewhere else, the same path may later name another file.
    const elsewhere = preview.place === path ? [] : [preview.place];
    return { key: keyOf([tool.name, "path", path, ...elsewhere]), text };
  }
  const isCommand = tool.kind === "execute" && preview.kind === "command";
  const text = isCommand ? "this exact command" : `${name} with exactly these arguments`;
  return { key: keyOf([tool.name, "arguments", args, preview.summary, preview.place ?? null]), text };
}

const keyOf = (facts: unknown): string =>
  createHash("sha256").update(canonicalJson(facts)).digest("base64url");
