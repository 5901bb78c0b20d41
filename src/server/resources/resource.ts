/** Defines the server's resources, and registers and lists them. */
import type { McpServer, Resource, Variables } from "@modelcontextprotocol/server";
import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Principal } from "../../runs/run.ts";
import type { ConnectionDeps } from "../contracts/deps.ts";
import { failureText } from "../contracts/failures.ts";
import { type Revision, cacheFor } from "../contracts/revisions.ts";
import { decodeOnce } from "../contracts/uris.ts";
import { parsedJson, defined } from "../../core/unknown.ts";

/** Dependencies of one server instance's resources. */
export interface ResourceScope extends Pick<ConnectionDeps, "runs" | "changes" | "logger"> {
  revision: Revision;
  /** Owner of the resources: an instance serves one principal only. */
  principal: Principal;
}

/** A text, or bytes in base64. */
export type Contents = {
  /** Default: that of the resource. */
  mimeType?: string;
  _meta?: Record<string, unknown>;
} & ({ text: string } | { blob: string });

export interface ReadRequest {
  uri: string;
  /** Variables of the template by name, percent-decoded exactly once. */
  variables: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

/** One kind of resource. Nothing here is shared between principals. */
export interface ResourceSpec {
  name: string;
  /** The URI, or a template of URIs. */
  uri: string;
  title: string;
  description: string;
  mimeType?: string;
  /** Returns the few that the first page of `resources/list` shows. Default: itself, unless it is a template. */
  list?(scope: ResourceScope): Promise<Resource[]>;
  /** Completes a template variable that begins with `typed`, from the variables that are `known`. */
  complete?: Record<
    string,
    (scope: ResourceScope, typed: string, known: Readonly<Record<string, string>>) => Promise<string[]>
  >;
  /**
   * A client may keep the contents for `ttlMs`, by default only the principal's own.
   *
   * @throws ResourceNotFoundError also for resources of other principals.
   */
  read(
    request: ReadRequest,
    scope: ResourceScope,
  ): Promise<Contents & { ttlMs: number; cacheScope?: "public" | "private" }>;
}

/** Registers a resource. Nothing of `scope` is used before a client asks. */
export function registerResource(mcp: McpServer, scope: ResourceScope, spec: ResourceSpec): void {
  const { name, uri, complete = {} } = spec;
  const read = (href: string, encodedVariables: Variables, signal: AbortSignal) =>
    guarded(`resources/read of ${href}`, scope, async () => {
      const variables = decoded(encodedVariables);
      if (variables === undefined) throw new ResourceNotFoundError(href);
      const request = { uri: href, variables, signal };
      const { ttlMs, cacheScope = "private", ...contents } = await spec.read(request, scope);
      return { contents: [{ uri: href, mimeType: spec.mimeType, ...contents }], ttlMs, cacheScope };
    });
  const metadata = listedMetadata(spec);
  if (!isTemplate(spec)) {
    mcp.registerResource(name, uri, metadata, ({ href }, { mcpReq }) => read(href, {}, mcpReq.signal));
    return;
  }
  const completers = Object.entries(complete).map(([variable, values]) => [
    variable,
    (typed: string, context?: { arguments?: Record<string, string> }) =>
      guarded("completion/complete", scope, () => values(scope, typed, context?.arguments ?? {})),
  ]);
  const template = new ResourceTemplate(uri, { list: undefined, complete: Object.fromEntries(completers) });
  mcp.registerResource(name, template, metadata, ({ href }, variables, { mcpReq }) =>
    read(href, variables, mcpReq.signal),
  );
}

const isTemplate = ({ uri }: ResourceSpec): boolean => uri.includes("{");

const listedMetadata = ({ title, description, mimeType }: ResourceSpec) => ({
  title,
  description,
  ...defined({ mimeType }),
});

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

/** Resources on one page of `resources/list`, besides the fixed ones. */
const PAGE = 50;
/** Resources of one section on all pages: clients tend to read a list to its end. */
const LISTED = 500;

/** Lists resources of one kind in their order, from the one after the id `after`. */
export type ListSection = (
  scope: ResourceScope,
  options: { limit: number; after?: string },
) => Promise<readonly { id: string; resource: Resource }[]>;

const Cursor = z.strictObject({
  section: z.int().min(0).max(10),
  after: z.string().min(1).max(5000).optional(),
  /** Resources of the section on the pages before. */
  listed: z.int().min(0).max(LISTED),
});
type Cursor = z.output<typeof Cursor>;

/** Answers `resources/list` in pages, which the SDK's own list does not have: `specs`, then each section. */
export function serveList(
  mcp: McpServer,
  scope: ResourceScope,
  specs: readonly ResourceSpec[],
  sections: readonly ListSection[],
): void {
  mcp.server.setRequestHandler("resources/list", async ({ params }) =>
    guarded("resources/list", scope, async () => {
      const text = params?.cursor;
      const given = text === undefined ? undefined : parsedJson(Buffer.from(text, "base64url").toString());
      const cursor = Cursor.safeParse(given).data;
      if (text !== undefined && cursor === undefined) throw invalidCursor();
      const first: Resource[] = [];
      for (const spec of cursor === undefined ? specs : []) first.push(...(await listed(spec, scope)));
      const page = await listPage(sections, scope, cursor);
      // A client that has the list should learn when it grows.
      scope.changes.watch(scope.principal);
      return { ...page, resources: [...first, ...page.resources], ...cacheFor(scope.revision, 0) };
    }),
  );
}

async function listed(spec: ResourceSpec, scope: ResourceScope): Promise<Resource[]> {
  const { name, uri } = spec;
  const metadata = listedMetadata(spec);
  if (spec.list === undefined) return isTemplate(spec) ? [] : [{ uri, name, ...metadata }];
  return (await spec.list(scope)).map((resource) => ({ ...metadata, ...resource }));
}

async function listPage(
  sections: readonly ListSection[],
  scope: ResourceScope,
  cursor: Cursor = { section: 0, listed: 0 },
): Promise<{ resources: Resource[]; nextCursor?: string }> {
  const resources: Resource[] = [];
  let next = cursor;
  for (let left = PAGE; left > 0;) {
    const list = sections[next.section];
    if (list === undefined) return { resources };
    const { section, listed: before, after } = next;
    const limit = Math.min(left, LISTED - before);
    const found = limit === 0 ? [] : await list(scope, { limit, ...defined({ after }) });
    resources.push(...found.map(({ resource }) => resource));
    left -= found.length;
    const last = found.length === limit ? found.at(-1) : undefined;
    next = last
      ? { section, after: last.id, listed: before + found.length }
      : { section: section + 1, listed: 0 };
  }
  return { resources, nextCursor: Buffer.from(JSON.stringify(next)).toString("base64url") };
}

export const invalidParams = (message: string, data?: { uri: string }): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message, data);

export const invalidCursor = (): ProtocolError =>
  invalidParams("Invalid cursor: take it from the answer before, or leave it out.");

/** Passes errors that are written for the client; any other one is logged and hidden behind a reference. */
export async function guarded<Value>(
  request: string,
  { logger }: Pick<ConnectionDeps, "logger">,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const text = failureText(error, { kind: "resource", name: request }, { logger });
    throw new ProtocolError(ProtocolErrorCode.InternalError, text);
  }
}
