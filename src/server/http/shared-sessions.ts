/** The 2025-era sessions that all servers on one storage serve. */
import { randomBytes } from "node:crypto";
import { isJSONRPCResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { SessionStore, SharedState } from "../../runs/server-ports.ts";
import { askerOf } from "./session-transport.ts";

export class SharedSessions {
  /** Names this server in the ids of its questions. */
  readonly server = randomBytes(6).toString("hex");
  readonly #open: () => Promise<Pick<SharedState, "sessions">>;

  constructor(open: () => Promise<Pick<SharedState, "sessions">>) {
    this.#open = open;
  }

  get store(): Promise<SessionStore> {
    return this.#open().then(({ sessions }) => sessions);
  }

  /** True for an answer to a question that another server asked. */
  isForeign(message: unknown): boolean {
    const asker = isJSONRPCResponse(message) ? askerOf(message.id) : undefined;
    return asker !== undefined && asker !== this.server;
  }

  /** Stores subscriptions for the server that takes over the session if this one is lost. */
  async remember(session: string, body: unknown): Promise<void> {
    for (const message of [body].flat()) {
      const { method, params } = Subscription.safeParse(message).data ?? {};
      if (params !== undefined) await (await this.store).subscribe(session, params.uri, method === SUBSCRIBE);
    }
  }
}

const SUBSCRIBE = "resources/subscribe";
const Subscription = z.looseObject({
  method: z.enum([SUBSCRIBE, "resources/unsubscribe"]),
  params: z.looseObject({ uri: z.string() }),
});
