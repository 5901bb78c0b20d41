import type { ServerContext } from "@modelcontextprotocol/server";
import type { Principal } from "../runs/run.ts";
import type { RunService } from "../runs/service.ts";
import type { ClientFacts } from "./client.ts";
import type { OpenRequests } from "./delivery/open-requests.ts";
import type { ServerDeps } from "./deps.ts";
import type { StateCodec } from "./state-codec.ts";

/** One tool call, with all that a handler may use. */
export interface ToolCall {
  readonly deps: ServerDeps;
  readonly codec: StateCodec;
  readonly context: ServerContext;
  readonly client: ClientFacts;
  readonly principal: Principal;
  readonly runs: RunService;
  /** Of the tool and its arguments. */
  readonly digest: string;
  /** By the clock of `deps`. */
  readonly begunAt: number;
  /** Questions on this connection that the client has not answered yet. */
  readonly open: OpenRequests;
}
