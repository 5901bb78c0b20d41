/** The protocol revisions that the server supports, as data. A new revision is a row with its new features. */
import type { McpRequestContext } from "@modelcontextprotocol/server";
import table from "./revisions.json" with { type: "json" };

export interface Revision {
  readonly id: string;
  /** Form of questions to people and to the client's model: pushed during a call, or a result that ends the call. */
  readonly asks: "pushed" | "input_required";
  /** True if a call may answer with a task. */
  readonly tasks: boolean;
  /** A handshake declares the client once and opens its session. Otherwise every request declares its client. */
  readonly sessions: boolean;
  /** A client may send several messages in a list. */
  readonly batches: boolean;
  /** True if answers state how long a client may cache them. */
  readonly cacheHints: boolean;
  /** True if options in forms have titles, and several can be chosen. */
  readonly lists: boolean;
  /** Code of the error for a resource that does not exist. */
  readonly resourceNotFound: number;
}

/** Newest first. */
export const REVISIONS = table as unknown as readonly [Revision, ...Revision[]]; // rows have these members

/**
 * Returns the revision of a request or connection. The SDK calls it `modern` if requests stand alone and `legacy`
 * if a handshake agrees on the `id`; before the handshake the oldest revision holds.
 */
export function revisionOf(era: McpRequestContext["era"], id?: string): Revision {
  const [latest] = REVISIONS;
  if (era === "modern") return latest;
  return REVISIONS.find((revision) => revision.id === id) ?? REVISIONS.at(-1) ?? latest;
}

/** Returns the cache lifetime of an answer, in revisions that have such hints. */
export const cacheFor = ({ cacheHints }: Revision, ttlMs: number) =>
  cacheHints ? { ttlMs, cacheScope: "private" as const } : {};
