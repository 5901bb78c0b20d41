import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type ReadResourceResult,
} from "@modelcontextprotocol/server";
import type { Backend, BackendErrorCode, FileData } from "../../backends/backend.ts";

type Contents = ReadResourceResult["contents"][number];

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

/** The file or directory at a path; a file's text or bytes, a directory's entries as URIs. */
export async function readTarget(target: ReadTarget): Promise<Contents> {
  const { backend, path, uri, signal } = target;
  if (path.endsWith("/")) return listDirectory(target);
  const read = await backend.readRaw(path, { signal });
  if (read.data !== undefined) return fileContents(uri, read.data);
  if (read.code === "is_directory") return listDirectory(target);
  throw refusal(uri, read.code, read.error);
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

function fileContents(uri: string, data: FileData): Contents {
  if (Array.isArray(data.content)) return { uri, mimeType: "text/plain", text: data.content.join("\n") };
  const mimeType = "mimeType" in data ? data.mimeType : "text/plain";
  if (typeof data.content === "string") return { uri, mimeType, text: data.content };
  return { uri, mimeType, blob: Buffer.from(data.content).toString("base64") };
}

function refusal(uri: string, code: BackendErrorCode | undefined, error: string | undefined): ProtocolError {
  if (code === undefined || NOT_FOUND.has(code)) return new ResourceNotFoundError(uri);
  return new ProtocolError(ProtocolErrorCode.InternalError, error ?? `Cannot read ${uri}`, { uri });
}
