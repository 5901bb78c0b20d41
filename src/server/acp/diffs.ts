/** Turns unified diffs into the pairs of texts that editors show as changes. */
import type { ToolCallContent } from "@agentclientprotocol/sdk";
import { fenced } from "../views/quoting.ts";

interface Hunk {
  before: string[];
  after: string[];
}

/** One change for each part of the diff that has all its lines; a diff in which lines are left out, as text. */
export function diffContent(diff: string, path: string): ToolCallContent[] {
  const hunks = hunksOf(diff);
  if (hunks === undefined) return [textContent(fenced(diff, "diff"))];
  const isNew = diff.startsWith("--- /dev/null\n");
  return hunks.map(({ before, after }) => ({
    type: "diff",
    path,
    oldText: isNew ? null : before.join("\n"),
    newText: after.join("\n"),
  }));
}

/** `undefined`: some of its lines are not lines of a diff, such as a note that lines are left out. */
function hunksOf(diff: string): Hunk[] | undefined {
  const hunks: Hunk[] = [];
  for (const line of diff.split("\n")) {
    const hunk = hunks.at(-1);
    if (line.startsWith("@@")) hunks.push({ before: [], after: [] });
    else if (hunk === undefined) {
      if (!/^(---|\+\+\+) /.test(line)) return undefined;
    } else if (line.startsWith("+")) hunk.after.push(line.slice(1));
    else if (line.startsWith("-")) hunk.before.push(line.slice(1));
    else if (line.startsWith(" ")) {
      hunk.before.push(line.slice(1));
      hunk.after.push(line.slice(1));
    } else if (line !== "" && !line.startsWith("\\")) return undefined;
  }
  return hunks.length === 0 ? undefined : hunks;
}

export const textContent = (text: string): ToolCallContent => ({
  type: "content",
  content: { type: "text", text },
});
