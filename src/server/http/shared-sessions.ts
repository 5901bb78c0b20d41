/** Messages between servers about the 2025-era sessions that all of them serve. */
import { randomBytes } from "node:crypto";
import { type JSONRPCMessage, isJSONRPCResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Logger } from "../../core/logger.ts";
import type { Mail, SessionStore, SharedState } from "../../runs/server-ports.ts";
import { askerOf, isCancellation } from "./session-transport.ts";

export interface SharedSessionsOptions {
  open: () => Promise<Pick<SharedState, "sessions">>;
  logger: Logger;
}

/** Passes on what a client sent to one server and another one needs, whichever the proxy chose. */
export class SharedSessions {
  /** Names this server. */
  readonly server = randomBytes(6).toString("hex");
  readonly #options: SharedSessionsOptions;
  #listening: { close(): void } | undefined;
  #isClosed = false;

  constructor(options: SharedSessionsOptions) {
    this.#options = options;
  }

  get store(): Promise<SessionStore> {
    return this.#options.open().then(({ sessions }) => sessions);
  }

  /** Has `deliver` called with messages that came to other servers, from now on. */
  async listen(deliver: (session: string, message: JSONRPCMessage) => void): Promise<void> {
    const store = await this.store;
    if (this.#listening !== undefined || this.#isClosed) return;
    const take = async (): Promise<void> => {
      for (const { session, message } of await store.take(this.server)) {
        deliver(session, JSON.parse(message) as JSONRPCMessage); // as `passOn` stored it
      }
    };
    this.#listening = store.listen(this.server, () => {
      take().catch((error: unknown) => this.#options.logger.warn("http.mail_not_taken", { error }));
    });
  }

  /**
   * Gives answers to the servers that asked, and to all servers what changes the session or ends a call, which only
   * one of them has. False: too much waits to be taken.
   */
  async passOn(session: string, body: unknown): Promise<boolean> {
    for (const message of Array.isArray(body) ? (body as unknown[]) : [body]) {
      if (isJSONRPCResponse(message)) {
        const to = askerOf(message.id);
        if (to === undefined || to === this.server) continue;
        if (!(await this.#post(session, message, to))) return false;
      }
      const subscription = Subscription.safeParse(message).data;
      if (subscription !== undefined) {
        const { method, params } = subscription;
        await (await this.store).subscribe(session, params.uri, method === SUBSCRIBE);
      }
      if (subscription === undefined && !isCancellation(message)) continue;
      if (!(await this.#post(session, message))) return false;
    }
    return true;
  }

  close(): void {
    this.#isClosed = true;
    this.#listening?.close();
  }

  async #post(session: string, message: unknown, to?: string): Promise<boolean> {
    const mail: Mail = { session, message: JSON.stringify(message) };
    const store = await this.store;
    return store.post({ ...mail, from: this.server, ...(to === undefined ? {} : { to }) });
  }
}

const SUBSCRIBE = "resources/subscribe";
const Subscription = z.looseObject({
  method: z.enum([SUBSCRIBE, "resources/unsubscribe"]),
  params: z.looseObject({ uri: z.string() }),
});
