export interface DiffLine {
  kind: "file" | "hunk" | "add" | "del" | "context";
  text: string;
}

/**
 * The lines of a unified diff. A line that begins with `---` or `+++` names a file only before the first
 * hunk; below it, it is a removed or an added line like any other.
 */
export function diffLines(diff: string): DiffLine[] {
  let inHunk = false;
  return diff.split("\n").map((text) => {
    if (text.startsWith("@@")) inHunk = true;
    return { kind: kindOf(text, inHunk), text };
  });
}

function kindOf(text: string, inHunk: boolean): DiffLine["kind"] {
  if (!inHunk && /^(---|\+\+\+) /.test(text)) return "file";
  if (text.startsWith("@@")) return "hunk";
  if (text.startsWith("+")) return "add";
  return text.startsWith("-") ? "del" : "context";
}
