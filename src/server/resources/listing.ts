import {
  ProtocolError,
  ProtocolErrorCode,
  type McpServer,
  type Resource,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Principal } from "../../runs/run.ts";
import type { Era, ServerDeps } from "../deps.ts";
import { guarded } from "./guarded.ts";

/** Runs on one page of `resources/list`. */
const PAGE = 50;
/** Runs on all pages together: clients tend to read a list to its end. Older ones are found by their id. */
const LISTED_RUNS = 500;

/** Resources by a few names, on the first page of the list. */
export type ListPart = () => Promise<Resource[]>;
/** Resources of runs, newest first, from the one after `before`. */
export type ListRuns = (options: {
  limit: number;
  before?: string;
}) => Promise<readonly { id: string; resource: Resource }[]>;

const Cursor = z.strictObject({
  before: z.string().min(1).max(200),
  listed: z.int().min(1).max(LISTED_RUNS),
});
type Cursor = z.output<typeof Cursor>;

interface ListingScope extends Pick<ServerDeps, "changes" | "logger"> {
  era: Era;
  principal: Principal;
}

/** What `resources/list` of one server instance shows; the SDK's own list has no pages. */
export class ResourceListing {
  readonly #parts: ListPart[] = [];
  #runs: ListRuns = async () => [];

  add(part: ListPart): void {
    this.#parts.push(part);
  }

  addRuns(runs: ListRuns): void {
    this.#runs = runs;
  }

  /** Answers `resources/list`; call it when everything is registered. */
  serve(mcp: McpServer, scope: ListingScope): void {
    const hints = scope.era === "modern" ? { ttlMs: 0, cacheScope: "private" as const } : {};
    mcp.server.setRequestHandler("resources/list", async ({ params }) =>
      guarded("resources/list", scope, async () => {
        const page = await this.#page(cursorOf(params?.cursor));
        // Whoever has the list wants to hear when it grows.
        scope.changes.watch(scope.principal);
        return { ...page, ...hints };
      }),
    );
  }

  async #page(cursor: Cursor | undefined): Promise<{ resources: Resource[]; nextCursor?: string }> {
    const { before, listed = 0 } = cursor ?? {};
    const fixed: Resource[] = [];
    for (const part of cursor === undefined ? this.#parts : []) fixed.push(...(await part()));
    const room = Math.min(PAGE, LISTED_RUNS - listed);
    const runs =
      room === 0 ? [] : await this.#runs({ limit: room, ...(before === undefined ? {} : { before }) });
    const last = runs.length === room ? runs.at(-1) : undefined;
    const next = last && { before: last.id, listed: listed + runs.length };
    return {
      resources: [...fixed, ...runs.map(({ resource }) => resource)],
      ...(next === undefined || next.listed >= LISTED_RUNS ? {} : { nextCursor: encoded(next) }),
    };
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
