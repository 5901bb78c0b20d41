import { z } from "zod";
import { deletionUnavailable, refusedToDelete } from "../backends/errors.ts";
import { backendError, cancellable, checkPath, pathArgument } from "./call.ts";
import { displayName } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import { type ToolContext, type ToolResult, type ToolSpec, defineTool } from "./tool.ts";

const schema = z.strictObject({ file_path: z.string() });

/** Deletes a file or a directory tree. */
export function deleteTool(settings: FileToolSettings): ToolSpec<typeof schema> {
  return defineTool({
    name: "delete",
    kind: "write",
    description:
      "Delete a file, or a directory with everything in it. There is no undo. Links are removed, not followed.",
    schema,
    aliases: { path: "file_path" },
    pathOf: ({ file_path: path }) => pathArgument(path, settings.allowedPrefixes),
    handle: (args, context) =>
      cancellable("delete", context.signal, () => remove(args.file_path, context, settings.allowedPrefixes)),
    async preview({ file_path: path }) {
      const name = displayName(path);
      return { kind: "arguments", summary: `Delete ${name} and everything below it`, detail: name };
    },
  });
}

async function remove(
  raw: string,
  { backend, signal }: ToolContext,
  allowedPrefixes: readonly string[] | undefined,
): Promise<ToolResult> {
  const checked = checkPath(raw, backend, allowedPrefixes);
  if (!checked.ok) return backendError(checked, raw);
  const { path } = checked;
  if (path === "/" || path === ".") return backendError(refusedToDelete(path), path);
  if (!backend.delete) return backendError(deletionUnavailable(path), path);
  const result = await backend.delete(path, { signal });
  if (result.error !== undefined) return backendError(result, path);
  return {
    content: `Deleted ${displayName(result.path ?? path)}`,
    artifact: { path: result.path ?? path },
    ...(result.filesUpdate ? { update: { files: { ...result.filesUpdate, ...result.recorded } } } : {}),
  };
}
