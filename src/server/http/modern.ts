import type { IncomingMessage, ServerResponse } from "node:http";
import { toNodeHandler, type NodeMcpRequestHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, type AuthInfo, type McpServerFactory } from "@modelcontextprotocol/server";
import type { Principal } from "../../runs/run.ts";
import { allows } from "../auth/scopes.ts";
import { principalOf } from "../auth/auth.ts";
import { followListened, type ResourceChanges } from "../resources/bus.ts";

export type AuthenticatedRequest = IncomingMessage & { auth?: AuthInfo };

export interface ModernOptions {
  factory: McpServerFactory;
  changes: ResourceChanges;
  keepAliveMs: number;
  onerror: (error: Error) => void;
  /** Principals whose handler is kept while none of their requests is open. Default 1000. */
  keptIdle?: number;
}

interface Handler {
  serve: NodeMcpRequestHandler;
  close(): Promise<void>;
  /** Requests and streams open now. */
  open: number;
}

/**
 * Serves 2026-07-28 requests, with a handler for each principal: whoever listens to changes hears of the
 * principal's own and of nobody else's.
 */
export class ModernHandlers {
  readonly #options: ModernOptions;
  /** In the order of last use. */
  readonly #handlers = new Map<Principal, Handler>();

  constructor(options: ModernOptions) {
    this.#options = options;
  }

  async serve(request: AuthenticatedRequest, response: ServerResponse, body: unknown): Promise<void> {
    const principal = principalOf(request.auth);
    const handler = this.#handlers.get(principal) ?? this.#create(principal);
    this.#handlers.delete(principal);
    this.#handlers.set(principal, handler);
    handler.open += 1;
    response.once("close", () => {
      handler.open -= 1;
      this.#closeIdle();
    });
    if (allows(request.auth, "read")) followListened(this.#options.changes, principal, body);
    await handler.serve(request, response, body);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#handlers.values()].map((handler) => handler.close()));
  }

  #create(principal: Principal): Handler {
    const { factory, changes, keepAliveMs, onerror } = this.#options;
    const mcp = createMcpHandler(factory, { legacy: "reject", keepAliveMs, onerror });
    const detach = changes.attach(principal, mcp.notify);
    return {
      serve: toNodeHandler(mcp),
      close: async () => {
        detach();
        await mcp.close();
      },
      open: 0,
    };
  }

  #closeIdle(): void {
    const { keptIdle = 1000, onerror } = this.#options;
    for (const [principal, handler] of this.#handlers) {
      if (this.#handlers.size <= keptIdle) return;
      if (handler.open > 0) continue;
      this.#handlers.delete(principal);
      handler.close().catch(onerror);
    }
  }
}
