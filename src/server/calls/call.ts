/** Facts about a tool call, for the tools and for the deliveries that answer it. */
import { createHash } from "node:crypto";
import type { ServerContext } from "@modelcontextprotocol/server";
import { canonicalJson } from "../../core/json.ts";
import type { Principal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import type { OpenRequests } from "./open-requests.ts";
import type { ClientFacts } from "./client.ts";
import type { ConnectionDeps } from "../contracts/deps.ts";
import type { StateCodec } from "./state.ts";

/** One tool call, with all that a handler may use. */
export interface ToolCall {
  readonly deps: ConnectionDeps;
  readonly codec: StateCodec;
  readonly context: ServerContext;
  readonly client: ClientFacts;
  readonly principal: Principal;
  readonly runs: PrincipalRuns;
  /** Digest of the tool and its arguments. */
  readonly digest: string;
  /** Start time, by the clock of `deps`. */
  readonly begunAt: number;
  /** Questions on this connection that the client has not answered yet. */
  readonly open: OpenRequests;
}

/** Returns a digest that represents a call in signed texts, which clients can read. */
export const callDigest = (tool: string, args: unknown): string =>
  createHash("sha256")
    .update(canonicalJson([tool, args]))
    .digest("base64url")
    .slice(0, 22);
