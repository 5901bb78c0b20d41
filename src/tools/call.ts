import { displayName, wellFormed } from "../core/text.ts";
import { isAbortError } from "../core/errors.ts";
import type { Backend, Failure } from "../backends/backend.ts";
import { type PathResult, validatePath } from "../backends/paths.ts";
import { isWellFormed } from "./format.ts";
import { nearestPath } from "./nearest-path.ts";
import { type ToolContext, type ToolResult, toolError } from "./tool.ts";

/**
 * Runs the work of a call. However an abort shows (before, as an error result, as an exception), the answer
 * is the same; work that finished all the same keeps its result, because its effect is real.
 */
export async function cancellable(
  tool: string,
  signal: AbortSignal,
  work: () => Promise<ToolResult>,
): Promise<ToolResult> {
  if (signal.aborted) return cancelled(tool);
  try {
    const result = await work();
    return signal.aborted && result.status === "error" ? cancelled(tool) : result;
  } catch (error) {
    if (signal.aborted && (isAbortError(error) || error === signal.reason)) return cancelled(tool);
    throw error;
  }
}

/** A path argument as the backend takes it. An omitted directory is the root, or the working directory. */
export function checkPath(
  path: string | undefined,
  backend: Backend,
  allowedPrefixes: readonly string[] | undefined,
): PathResult {
  const form = backend.capabilities?.paths ?? "virtual";
  const given = path ?? (form === "real" ? "." : "/");
  if (!isWellFormed(given)) {
    return {
      ok: false,
      code: "invalid_path",
      error: `Path contains half of a surrogate pair: ${displayName(given)}`,
    };
  }
  return validatePath(given, { form, ...(allowedPrefixes ? { allowedPrefixes } : {}) });
}

/** The normalised virtual path of an argument, for gates and permissions; `undefined` if it is not valid. */
export function pathArgument(
  path: string | undefined,
  allowedPrefixes: readonly string[] | undefined,
): string | undefined {
  const checked = validatePath(path ?? "/", allowedPrefixes ? { allowedPrefixes } : {});
  return checked.ok ? checked.path : undefined;
}

/** A backend's failure as the tool's answer; `named`, the path in its text, is shown escaped. */
export function backendError({ error = "unknown failure", code }: Failure, named: string): ToolResult {
  const shown = displayName(named);
  const text = shown === named ? error : error.replaceAll(named, () => shown);
  return toolError(wellFormed(text), code === undefined ? undefined : { code });
}

/** As `backendError`; when nothing is at `path`, it suggests the path that was probably meant. */
export async function failedAt(
  path: string,
  failure: Failure,
  { backend, signal }: ToolContext,
): Promise<ToolResult> {
  const isVirtual = backend.capabilities?.paths !== "real";
  const nearest =
    failure.code === "not_found" && isVirtual ? await nearestPath(path, backend, signal) : undefined;
  if (nearest === undefined) return backendError(failure, path);
  return backendError(
    { ...failure, error: `${failure.error ?? "not found"}. Did you mean ${displayName(nearest)}?` },
    path,
  );
}

function cancelled(tool: string): ToolResult {
  return toolError(`${tool} was cancelled.`, { code: "aborted" });
}
