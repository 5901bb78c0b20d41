import { z } from "zod";
import type { Backend, FileInfo } from "../backends/backend.ts";
import { errors } from "../backends/errors.ts";
import { withoutSlash } from "../backends/paths.ts";
import { displayName, displayText, headOf } from "../core/text.ts";
import { backendError, failedAt, pathText, pathTool, previewMissing } from "./call.ts";
import { currentText, resolveDestination, failing, preview } from "./call-preview.ts";
import { counted, splitLines } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import type { ToolContext, ToolResult, ToolSpec } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

const deleteSchema = z.strictObject({ file_path: pathText() });

export const deleteTool = (settings: FileToolSettings): ToolSpec<typeof deleteSchema> =>
  pathTool(
    {
      name: "delete",
      kind: "write",
      description: texts.delete,
      schema: deleteSchema,
      work: (_args, { path }, context) => deletePath(path, context),
      shown: {
        title: "Delete",
        // Bound to each entry that would go, with its size and time.
        async preview(args, { path }, context) {
          const { backend, signal } = context;
          // Here `deletePath` deletes nothing and returns the reason.
          if (/^[/.]$/.test(path) || !backend.delete)
            return failing("Delete", args, { failure: await deletePath(path, context) });
          const to = await resolveDestination(path, backend, { lastLink: "itself" });
          const { name } = to;
          if (await isLink(path, backend)) {
            const summary = `Delete the link ${name}; its target stays`;
            const detail = displayName(path);
            return preview("arguments", { summary, to, detail, isWhole: true, effect: null });
          }
          const missing = await previewMissing("Delete", args, { path, expects: "either" }, context);
          if (missing) return missing;
          const { entries, isAll } = await listEntries(path, backend, signal);
          // A larger folder is looked through when it is deleted.
          const refused = isAll ? await backend.refusal?.("delete", path, { signal }) : undefined;
          if (refused) return failing(`Delete ${name}`, args, { failure: backendError(refused, path), to });
          const number = `${isAll ? "" : "more than "}${counted(entries.length, "entry", "entries")}`;
          const isOne = entries.length === 1 && entries[0]?.path === path;
          const shown = entries.slice(0, isAll ? undefined : 200).map((entry) => displayName(entry.path));
          // The folder itself names the affected files if its entries are too many to be looked up.
          const rest = isAll ? [] : ["[and everything else below this folder]"];
          const detail = [...shown, ...rest].join("\n") || displayName(path);
          const size = counted(
            entries.reduce((sum, entry) => sum + (entry.size ?? 0), 0),
            "byte",
          );
          const call = preview("arguments", {
            summary: `Delete ${name}${isOne ? "" : ` and everything below it: ${number}`}`,
            to,
            detail,
            isWhole: true,
            effect: entries.map(({ path: at, size, modified_at }) => [at, size, modified_at]),
          });
          const lost = isOne ? await lostFile(path, backend, signal) : `${number}, ${size}\n\n${detail}`;
          return { ...call, lost };
        },
      },
    },
    settings,
  );

async function deletePath(path: string, context: ToolContext): Promise<ToolResult> {
  const { backend, signal } = context;
  if (/^[/.]$/.test(path)) return backendError(errors.refusedToDelete(path), path);
  if (!backend.delete) return backendError(errors.deletionUnavailable(path), path);
  const result = await backend.delete(path, { signal });
  if (result.error !== undefined) return failedAt(path, result, context);
  return {
    content: `Deleted ${displayName(result.path ?? path)}`,
    artifact: { path: result.path ?? path },
    ...(result.filesUpdate ? { update: { files: { ...result.filesUpdate, ...result.recorded } } } : {}),
  };
}

/** Size and first lines of a file, as far as it is text. */
async function lostFile(path: string, backend: Backend, signal: AbortSignal): Promise<string> {
  const current = await currentText(path, backend, signal);
  const size = counted(current.entry?.size ?? 0, "byte");
  if (current.kind !== "text") return "reason" in current ? `${size}, ${current.reason}` : size;
  const lines = splitLines(current.text);
  const cut = (line: string): string => (line.length > 200 ? `${headOf(line, 199)}…` : line);
  const first = lines.slice(0, 20).map((line) => displayText(cut(line)));
  const rest = lines.length > first.length ? ["…"] : [];
  return [`${counted(lines.length, "line")}, ${size}`, "", ...first, ...rest].join("\n");
}

async function isLink(path: string, backend: Backend): Promise<boolean> {
  const itself = await backend.followLinks?.(path, { lastLink: "itself" });
  return itself !== (await backend.followLinks?.(path));
}

/** The file, or the entries below the directory in the order of their paths; links are listed, not followed. */
async function listEntries(top: string, backend: Backend, signal: AbortSignal) {
  const entries: FileInfo[] = [];
  const directories = [top];
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    const { files = [] } = await backend.ls(directory, { signal });
    if (entries.length + files.length > 5000) return { entries, isAll: false };
    entries.push(...files);
    for (const { path, is_dir } of files) {
      const at = withoutSlash(path);
      if (is_dir === true && !(await isLink(at, backend))) directories.push(at);
    }
  }
  return { entries, isAll: true };
}
