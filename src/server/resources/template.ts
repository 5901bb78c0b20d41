import {
  ResourceNotFoundError,
  ResourceTemplate,
  type McpServer,
  type ReadResourceResult,
  type Resource,
  type Variables,
} from "@modelcontextprotocol/server";
import { guarded } from "./guarded.ts";
import type { ResourceScope } from "./scope.ts";
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
