import { orElse } from "../../core/errors.ts";

export const FILES_TEMPLATE = "deepagent://files/{+path}";
export const RUN_TEMPLATE = "deepagent://runs/{run_id}";

/** Views of a run below its own URI. */
export const RUN_VIEWS = ["report", "transcript", "events", "todos", "points"] as const;
export const runUri = (runId: string): string => `deepagent://runs/${encodeURIComponent(runId)}`;

/** URI of a file by its absolute virtual path, such as `/memories/a.md`. */
export const fileUri = (path: string): string => `deepagent://files${encodePath(path)}`;

/** Returns the URI of a thread's file by its absolute virtual path. */
export const runFileUri = (runId: string, path: string): string =>
  `${runUri(runId)}/files${encodePath(path)}`;

/** The run a URI belongs to; `undefined` for any other URI. */
export function runIdOf(uri: string): string | undefined {
  const encoded = /^deepagent:\/\/runs\/([^/?#]+)/.exec(uri)?.[1];
  return encoded === undefined ? undefined : decodeOnce(encoded);
}

/** Percent-decodes once; `undefined` for malformed input. */
export const decodeOnce = (text: string): string | undefined =>
  orElse(() => decodeURIComponent(text), undefined);

export const encodePath = (path: string): string => path.split("/").map(encodeURIComponent).join("/");
