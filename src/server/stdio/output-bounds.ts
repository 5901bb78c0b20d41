/** Bounds what waits for a client that does not read. HTTP uses it too. */
import type { JSONRPCMessage } from "@modelcontextprotocol/server";

/** Bytes that wait for a reader from where on it is behind. */
export const BEHIND_BYTES = 64 * 1024;
/** Bytes that may wait for it besides one last message; replaying a broken stream takes most. */
export const MOST_BYTES = 16 * 1024 * 1024;

/**
 * What a later message makes worthless to a reader who has not read this one: two messages with the same answer,
 * and the newer is enough. `undefined`: it has to be read.
 */
export function supersededBy(message: JSONRPCMessage): string | undefined {
  if (!("method" in message) || "id" in message) return undefined;
  const { method, params } = message;
  switch (method) {
    case "notifications/progress":
      return `${method} ${JSON.stringify(params?.["progressToken"])}`;
    case "notifications/resources/updated":
      return `${method} ${JSON.stringify(params?.["uri"])}`;
    case "notifications/resources/list_changed":
      return method;
    default:
      return undefined;
  }
}

/** Newest messages that wait until their reader has read what was sent before. */
export class LatestOnly<Message> {
  readonly #messages = new Map<string, Message>();

  /** In the place of an older one with the same key, but behind all others. */
  hold(key: string, message: Message): void {
    this.#messages.delete(key);
    this.#messages.set(key, message);
  }

  /** All of them, in the order they came; they are held no longer. */
  take(): Message[] {
    const messages = [...this.#messages.values()];
    this.#messages.clear();
    return messages;
  }
}
