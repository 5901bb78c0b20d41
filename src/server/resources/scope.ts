/** What all resources of a server instance share: their scope, their list, and how they fail. */
import { randomUUID } from "node:crypto";
import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type Resource,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { DeepAgentError } from "../../core/errors.ts";
import type { Principal } from "../../runs/run.ts";
import type { ServerDeps } from "../protocol/deps.ts";
import { type Revision, cacheFor } from "../protocol/revisions.ts";

/** What the resources of one server instance need. */
export interface ResourceScope extends Pick<ServerDeps, "runs" | "changes" | "logger"> {
  revision: Revision;
  /** Whose resources they are: an instance serves one principal only. */
  principal: Principal;
  /** Collects what `resources/list` shows. */
  listing: ResourceListing;
}

/** Resources on one page of `resources/list`, besides the fixed ones. */
const PAGE = 50;
/** Resources of one section on all pages: clients tend to read a list to its end. */
const LISTED = 500;

/** Resources by a few names, on the first page of the list. */
export type ListPart = () => Promise<Resource[]>;
/** Resources of one kind in their order, from the one after the id `after`. */
export type ListSection = (options: {
  limit: number;
  after?: string;
}) => Promise<readonly { id: string; resource: Resource }[]>;

const Cursor = z.strictObject({
  section: z.int().min(0).max(10),
  after: z.string().min(1).max(5000).optional(),
  /** Of the section, on the pages before. */
  listed: z.int().min(0).max(LISTED),
});
type Cursor = z.output<typeof Cursor>;

interface ListingScope extends Pick<ServerDeps, "changes" | "logger"> {
  revision: Revision;
  principal: Principal;
}

/** What `resources/list` of one server instance shows; the SDK's own list has no pages. */
export class ResourceListing {
  readonly #parts: ListPart[] = [];
  readonly #sections: ListSection[] = [];

  add(part: ListPart): void {
    this.#parts.push(part);
  }

  /** Sections follow each other in the order in which they were added. */
  addSection(section: ListSection): void {
    this.#sections.push(section);
  }

  /** Answers `resources/list`; call it when everything is registered. */
  serve(mcp: McpServer, scope: ListingScope): void {
    mcp.server.setRequestHandler("resources/list", async ({ params }) =>
      guarded("resources/list", scope, async () => {
        const page = await this.#page(cursorOf(params?.cursor));
        // Whoever has the list wants to hear when it grows.
        scope.changes.watch(scope.principal);
        return { ...page, ...cacheFor(scope.revision, 0) };
      }),
    );
  }

  async #page(cursor: Cursor | undefined): Promise<{ resources: Resource[]; nextCursor?: string }> {
    const resources: Resource[] = [];
    for (const part of cursor === undefined ? this.#parts : []) resources.push(...(await part()));
    let place: Cursor = cursor ?? { section: 0, listed: 0 };
    for (let left = PAGE; left > 0;) {
      const list = this.#sections[place.section];
      if (list === undefined) return { resources };
      const { section, listed, after } = place;
      const limit = Math.min(left, LISTED - listed);
      const found = limit === 0 ? [] : await list({ limit, ...(after === undefined ? {} : { after }) });
      resources.push(...found.map(({ resource }) => resource));
      left -= found.length;
      const last = found.length === limit ? found.at(-1) : undefined;
      place =
        last === undefined
          ? { section: section + 1, listed: 0 }
          : { section, after: last.id, listed: listed + found.length };
    }
    return { resources, nextCursor: encoded(place) };
  }
}

const encoded = (cursor: Cursor): string => Buffer.from(JSON.stringify(cursor)).toString("base64url");

function cursorOf(text: string | undefined): Cursor | undefined {
  if (text === undefined) return undefined;
  try {
    return Cursor.parse(JSON.parse(Buffer.from(text, "base64url").toString()));
  } catch {
    const message = "Invalid cursor: take it from the answer before, or leave it out.";
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  }
}

/** Lets through what is written for the client; anything else is logged and hidden behind a reference. */
export async function guarded<Value>(
  request: string,
  { logger }: Pick<ServerDeps, "logger">,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    if (error instanceof DeepAgentError) {
      logger.warn("resource.refused", { request, code: error.code, error });
      throw new ProtocolError(ProtocolErrorCode.InternalError, error.message);
    }
    const reference = randomUUID();
    logger.error("resource.failed", { request, reference, error });
    throw new ProtocolError(
      ProtocolErrorCode.InternalError,
      `${request} failed unexpectedly. Try again; if it fails again, look for ${reference} in the server's log.`,
    );
  }
}
