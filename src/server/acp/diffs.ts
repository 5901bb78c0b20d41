/** Turns unified diffs into the pairs of texts that editors show as changes. */
import type { ToolCallContent } from "@agentclientprotocol/sdk";
import { diffLines } from "../../core/diff.ts";
import { fenced } from "../views/quoting.ts";

/** One change for each part of the diff that has all its lines; a diff in which lines are left out, as text. */
export function diffContent(diff: string, path: string): ToolCallContent[] {
  const asText = [textContent(fenced(diff, "diff"))];
  const hunks: { before: string[]; after: string[] }[] = [];
  for (const { kind, text } of diffLines(diff)) {
    const hunk = hunks.at(-1);
    const line = text.slice(1);
    if (kind === "hunk") hunks.push({ before: [], after: [] });
    if (kind === "note" && text !== "" && !text.startsWith("\\")) return asText;
    if (kind === "del" || kind === "context") hunk?.before.push(line);
    if (kind === "add" || kind === "context") hunk?.after.push(line);
  }
  if (hunks.length === 0) return asText;
  const isNew = diff.startsWith("--- /dev/null\n");
  return hunks.map(({ before, after }) => ({
    type: "diff",
    path,
    oldText: isNew ? null : before.join("\n"),
    newText: after.join("\n"),
  }));
}

export const textContent = (text: string): ToolCallContent => ({
  type: "content",
  content: { type: "text", text },
});
