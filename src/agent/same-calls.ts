import { createHash } from "node:crypto";
import { canonicalJson } from "../core/canonical-json.ts";
import { displayName, oneLine } from "../core/text.ts";
import type { BoundPreview } from "../tools/tool.ts";
import type { AgentTool } from "./agent-tool.ts";
import type { SameCalls } from "./events.ts";

/**
 * Which later calls count as the same as this one, when a person approves "the same" for the run: changes of
 * the same file by the same tool, and otherwise only a call with the same arguments that would have the same
 * effect, which for a command includes whether a sandbox confines it.
 */
export function sameCalls(tool: AgentTool, args: Record<string, unknown>, preview: BoundPreview): SameCalls {
  const name = oneLine(displayName(tool.name), 64);
  const path = tool.kind === "write" ? tool.pathOf(args) : undefined;
  if (path !== undefined) {
    // Where links lead somewhere else, the path alone may come to mean another file.
    return {
      key: keyOf([tool.name, "path", path, ...(preview.place === path ? [] : [preview.place])]),
      text: `${name} of ${oneLine(displayName(path), 500)}, whatever it changes there`,
    };
  }
  const subject = tool.kind === "execute" && preview.kind === "command" ? "command" : "arguments";
  return {
    key: keyOf([tool.name, "arguments", args, preview.summary]),
    text: `${name} with exactly the ${subject} shown here`,
  };
}

const keyOf = (facts: unknown): string =>
  createHash("sha256").update(canonicalJson(facts)).digest("base64url");
