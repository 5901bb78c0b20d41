import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from "@modelcontextprotocol/server";
import type { Backend, BackendErrorCode } from "../../backends/backend.ts";
import type { Contents } from "./template.ts";

/** Listing of a directory: one URI a line. */
export const DIRECTORY_TYPE = "inode/directory";

/** Failures that say no more to a client than that there is nothing to read. */
const NOT_FOUND: ReadonlySet<BackendErrorCode> = new Set([
  "not_found",
  "not_directory",
  "permission_denied",
  "invalid_path",
  "outside_root",
  "symlink",
]);

export interface ReadTarget {
  backend: Backend;
  /** Absolute virtual path; a directory may end in `/`. */
  path: string;
  /** URI asked for; the contents carry it. */
  uri: string;
  /** URI of an entry of a directory. */
  uriOf: (path: string) => string;
  signal: AbortSignal;
}

/** Largest file that is a resource, in characters of text or bytes: its message is made in one turn of the event loop. */
const MAX_SIZE = 2 * 1024 * 1024;

/** The file or directory at a path: a file's text or bytes, a directory's entries as URIs. */
export async function readTarget(target: ReadTarget): Promise<Contents> {
  const { backend, path, uri, signal } = target;
  if (path.endsWith("/")) return listDirectory(target);
  const read = await backend.read(path, 0, Number.MAX_SAFE_INTEGER, { signal });
  if (read.code === "is_directory") return listDirectory(target);
  const { content, mimeType = "text/plain" } = read;
  if (content === undefined) throw refusal(uri, read.code, read.error);
  if (read.nextOffset !== undefined || content.length > MAX_SIZE) {
    const message = `${uri} is too large to be read as a resource. Read it in pages with read_agent_file.`;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message, { uri });
  }
  if (typeof content === "string") return { uri, mimeType, text: content };
  return { uri, mimeType, blob: Buffer.from(content).toString("base64") };
}

/** Paths that start with `typed`, by listing the directory it is in; none when that fails. */
export async function completePath(backend: Backend, typed: string): Promise<string[]> {
  const path = typed.startsWith("/") ? typed : `/${typed}`;
  const listed = await backend.ls(path.slice(0, path.lastIndexOf("/") + 1));
  const matching = (listed.files ?? []).map((file) => file.path).filter((entry) => entry.startsWith(path));
  return matching.map((entry) => entry.slice(1));
}

async function listDirectory({ backend, path, uri, uriOf, signal }: ReadTarget): Promise<Contents> {
  const listed = await backend.ls(path, { signal });
  if (listed.files === undefined) throw refusal(uri, listed.code, listed.error);
  return { uri, mimeType: DIRECTORY_TYPE, text: listed.files.map((file) => uriOf(file.path)).join("\n") };
}

function refusal(uri: string, code: BackendErrorCode | undefined, error: string | undefined): ProtocolError {
  if (code === undefined || NOT_FOUND.has(code)) return new ResourceNotFoundError(uri);
  return new ProtocolError(ProtocolErrorCode.InternalError, error ?? `Cannot read ${uri}`, { uri });
}
