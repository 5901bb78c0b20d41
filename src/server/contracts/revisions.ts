/** The protocol revisions that the server supports, as data. A new revision is a row with its new features. */
import { type McpRequestContext, ProtocolErrorCode } from "@modelcontextprotocol/server";

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
  readonly errorCodes: { readonly resourceNotFound: number };
}

const WITH_HANDSHAKE = {
  asks: "pushed",
  tasks: false,
  sessions: true,
  batches: false,
  cacheHints: false,
  lists: false,
  errorCodes: { resourceNotFound: ProtocolErrorCode.ResourceNotFound },
} as const;

const LATEST: Revision = {
  id: "2026-07-28",
  asks: "input_required",
  tasks: true,
  sessions: false,
  batches: false,
  cacheHints: true,
  lists: true,
  errorCodes: { resourceNotFound: ProtocolErrorCode.InvalidParams },
};
const OLDEST: Revision = { id: "2024-10-07", ...WITH_HANDSHAKE };

export const REVISIONS: readonly Revision[] = [
  LATEST,
  { id: "2025-11-25", ...WITH_HANDSHAKE, lists: true },
  { id: "2025-06-18", ...WITH_HANDSHAKE },
  { id: "2025-03-26", ...WITH_HANDSHAKE, batches: true },
  { id: "2024-11-05", ...WITH_HANDSHAKE },
  OLDEST,
];

/**
 * Returns the revision of a request or connection. The SDK calls it `modern` if requests stand alone and `legacy`
 * if a handshake agrees on the `id`; before the handshake the oldest revision holds.
 */
export const revisionOf = (era: McpRequestContext["era"], id?: string): Revision =>
  era === "modern" ? LATEST : (REVISIONS.find((revision) => revision.id === id) ?? OLDEST);

/** Returns the cache lifetime of an answer, in revisions that have such hints. */
export const cacheFor = ({ cacheHints }: Revision, ttlMs: number) =>
  cacheHints ? { ttlMs, cacheScope: "private" as const } : {};
