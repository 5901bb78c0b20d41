/** Registers resource templates, and makes contents of files. */
import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  ResourceTemplate,
  type Variables,
} from "@modelcontextprotocol/server";
import type { Backend, BackendErrorCode } from "../../backends/backend.ts";
import { type ResourceScope, guarded } from "./scope.ts";
import { decodeOnce } from "./uris.ts";

export type Contents = ReadResourceResult["contents"][number];

export interface ReadRequest {
  /** As the client gave it; contents carry it. */
  uri: string;
  /** Of the template by name, percent-decoded exactly once. */
  variables: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

/** One kind of resource, addressed by a template. Nothing here is shared between principals. */
export interface TemplateSpec {
  name: string;
  uriTemplate: string;
  title: string;
  description: string;
  mimeType?: string;
  /** What the first page of `resources/list` shows of it: a few. */
  list?(): Promise<Resource[]>;
  /** Values of a variable that start with `typed`, given the variables that are `known`. */
  complete: Record<string, (typed: string, known: Readonly<Record<string, string>>) => Promise<string[]>>;
  /** @throws ResourceNotFoundError also for what is not the principal's. */
  read(
    request: ReadRequest,
  ): Promise<{ contents: Contents; /** Milliseconds that a client may keep it. */ ttlMs: number }>;
}

export function registerTemplate(mcp: McpServer, scope: ResourceScope, spec: TemplateSpec): void {
  const { name, uriTemplate, title, description, mimeType, complete } = spec;
  const completers = Object.entries(complete).map(([variable, values]) => [
    variable,
    (typed: string, context?: { arguments?: Record<string, string> }) =>
      guarded("completion/complete", scope, () => values(typed, context?.arguments ?? {})),
  ]);
  const template = new ResourceTemplate(uriTemplate, {
    list: undefined,
    complete: Object.fromEntries(completers),
  });
  const metadata = { title, description, ...(mimeType === undefined ? {} : { mimeType }) };
  scope.listing.add(async () =>
    ((await spec.list?.()) ?? []).map((resource) => ({ ...metadata, ...resource })),
  );
  mcp.registerResource(name, template, metadata, ({ href }, encoded, { mcpReq }) =>
    guarded(`resources/read of ${href}`, scope, async () => {
      const variables = decoded(encoded);
      if (variables === undefined) throw new ResourceNotFoundError(href);
      const { contents, ttlMs } = await spec.read({ uri: href, variables, signal: mcpReq.signal });
      return { contents: [contents], ttlMs, cacheScope: "private" };
    }),
  );
}

/** `undefined` when a variable is not valid percent-encoding. */
function decoded(variables: Variables): Record<string, string> | undefined {
  const values: Record<string, string> = {};
  for (const [name, variable] of Object.entries(variables)) {
    const value = decodeOnce(String(variable));
    if (value === undefined) return undefined;
    values[name] = value;
  }
  return values;
}

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
