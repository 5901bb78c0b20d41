/** Files as resources: those that all threads share, those of one run, and the memories in the list. */
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from "@modelcontextprotocol/server";
import type { Backend, BackendErrorCode } from "../../backends/backend.ts";
import { mimeTypeOf } from "../../backends/mime.ts";
import type { Contents, ListSection, ReadRequest, ResourceScope, ResourceSpec } from "./resource.ts";
import { invalidParams } from "./resource.ts";
import { completeRun, findRun } from "./runs.ts";
import { FILES_TEMPLATE, RUN_TEMPLATE, fileUri, runFileUri } from "../contracts/uris.ts";
import facts from "./resources.json" with { type: "json" };

/**
 * Files that the agents of all threads share, by their virtual path, such as `/workspace/…`, `/memories/…` and
 * `/skills/…`. The list names the top-level folders; reading a folder lists it.
 */
export const FILES: ResourceSpec = {
  ...facts.files,
  uri: FILES_TEMPLATE,
  list: async (scope) => {
    const { files: mounts = [] } = await (await sharedFiles(scope)).ls("/");
    return mounts
      .filter((mount) => mount.is_dir)
      .map(({ path }) => ({ uri: fileUri(path), name: path, mimeType: DIRECTORY_TYPE }));
  },
  complete: { path: async (scope, typed) => completePath(await sharedFiles(scope), typed) },
  read: async (request, scope) => readTarget(request, await sharedFiles(scope), fileUri),
};

const sharedFiles = async ({ runs }: ResourceScope): Promise<Backend> => (await runs()).files.mounts();

/** Files as the agent of one run sees them. */
export const RUN_FILES: ResourceSpec = {
  ...facts.runFiles,
  uri: `${RUN_TEMPLATE}/files/{+path}`,
  complete: {
    run_id: completeRun,
    path: async (scope, typed, { run_id: runId = "" }) => {
      const backend = await (await scope.runs()).files.ofRun(runId);
      return backend === undefined ? [] : completePath(backend, typed);
    },
  },
  read: async (request, scope) => {
    const { service, runId } = await findRun(scope, request);
    const backend = await service.files.ofRun(runId);
    if (backend === undefined) throw new ResourceNotFoundError(request.uri);
    return readTarget(request, backend, (path) => runFileUri(runId, path));
  },
};

/** Lists the memories one by one, for people who pick resources from a list. */
export const listMemories: ListSection = async (scope, { limit, after = "" }) => {
  const { files = [] } = await (await sharedFiles(scope)).glob("**", "/memories");
  const paths = files.filter((file) => !file.is_dir).map(({ path }) => path);
  const next = paths.toSorted().filter((path) => path > after);
  const description = "A memory of the agent.";
  return next.slice(0, limit).map((path) => ({
    id: path,
    resource: { uri: fileUri(path), name: path, description, mimeType: mimeTypeOf(path) },
  }));
};

/** Listing of a directory: one URI a line. */
export const DIRECTORY_TYPE = "inode/directory";

/** Failures that a client sees only as "not found". */
const NOT_FOUND: ReadonlySet<string> = new Set(
  "not_found not_directory permission_denied invalid_path outside_root symlink".split(" "),
);

/** Largest file that is a resource, in characters of text or bytes: its message is made in one turn of the event loop. */
const MAX_SIZE = 2 * 1024 * 1024;

/** The file or directory at the path of a URI: a file's text or bytes, a directory's entries as URIs. */
async function readTarget(
  { uri, variables, signal }: ReadRequest,
  backend: Backend,
  uriOf: (path: string) => string,
): Promise<Contents & { ttlMs: number }> {
  // Absolute and virtual; that of a directory may end in `/`.
  const path = `/${variables["path"] ?? ""}`;
  const read = path.endsWith("/")
    ? undefined
    : await backend.read(path, 0, Number.MAX_SAFE_INTEGER, { signal });
  if (read === undefined || read.code === "is_directory") {
    const { files, code, error } = await backend.ls(path, { signal });
    if (files === undefined) throw refusal(uri, code, error);
    return { mimeType: DIRECTORY_TYPE, text: files.map((file) => uriOf(file.path)).join("\n"), ttlMs: 0 };
  }
  const { content, mimeType = "text/plain" } = read;
  if (content === undefined) throw refusal(uri, read.code, read.error);
  if (read.nextOffset !== undefined || content.length > MAX_SIZE) {
    const message = `${uri} is too large to be read as a resource. Read it in pages with read_agent_file.`;
    throw invalidParams(message, { uri });
  }
  if (typeof content === "string") return { mimeType, text: content, ttlMs: 0 };
  return { mimeType, blob: Buffer.from(content).toString("base64"), ttlMs: 0 };
}

/** Paths that start with `typed`, by listing the directory it is in; none when that fails. */
async function completePath(backend: Backend, typed: string): Promise<string[]> {
  const path = typed.startsWith("/") ? typed : `/${typed}`;
  const listed = await backend.ls(path.slice(0, path.lastIndexOf("/") + 1));
  const matching = (listed.files ?? []).map((file) => file.path).filter((entry) => entry.startsWith(path));
  return matching.map((entry) => entry.slice(1));
}

function refusal(uri: string, code: BackendErrorCode | undefined, error: string | undefined): ProtocolError {
  if (code === undefined || NOT_FOUND.has(code)) return new ResourceNotFoundError(uri);
  return new ProtocolError(ProtocolErrorCode.InternalError, error ?? `Cannot read ${uri}`, { uri });
}
