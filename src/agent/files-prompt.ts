import type { FileRoot } from "../backends/backend.ts";
import { rootAt } from "../backends/capabilities.ts";
import { withSlash } from "../backends/paths.ts";
import { displayName } from "../core/text.ts";
import { FILES_PROMPT, MEMORY_GUIDELINES } from "./prompts.ts";

const HOLDS = {
  thread: "scratch space of this conversation",
  kept: "kept for later conversations",
  disk: "the user's files",
  sandbox: "files of the sandbox that commands run in",
} as const satisfies Record<FileRoot["holds"], string>;

/** Tells an agent where the parts of its file tree begin, and what each is for. */
export function filesPrompt(roots: readonly FileRoot[]): string {
  const lines = roots.map(
    ({ path, holds, readOnly }) =>
      `- \`${displayName(withSlash(path))}\`: ${readOnly ? "read-only" : HOLDS[holds]}`,
  );
  const only = roots.some(({ path }) => path === "/") ? [] : ["There are no files elsewhere."];
  return FILES_PROMPT.replace("{tree}", () => [...lines, ...only].join("\n"));
}

/** Tells an agent what its memories are, and where it saves new ones, if it can. */
export function memoryGuidelines(roots: readonly FileRoot[], sources: readonly string[]): string {
  const kept = roots.filter(({ holds, readOnly }) => holds === "kept" && !readOnly);
  const folder = kept.find(({ path }) => path === "/memories") ?? kept[0];
  const file = sources.findLast((source) => rootAt(roots, source)?.readOnly !== true);
  const ways = [
    ...(file === undefined ? [] : ["`edit_file` on the file it belongs to"]),
    ...(folder === undefined ? [] : [`\`write_file\` below \`${withSlash(folder.path)}\` for a new subject`]),
    ...(file === undefined || folder
      ? []
      : [`\`write_file\` to \`${displayName(file)}\` when it is missing`]),
  ];
  const saving =
    ways.length === 0
      ? "You cannot change them."
      : MEMORY_GUIDELINES.saving.replace("{ways}", () => ways.join(" or "));
  return `<memory_guidelines>\n${MEMORY_GUIDELINES.reading} ${saving}\n</memory_guidelines>`;
}
