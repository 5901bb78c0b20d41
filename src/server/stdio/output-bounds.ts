/** Limits the messages that wait for a client that does not read. HTTP uses it too. */
import type { JSONRPCMessage } from "@modelcontextprotocol/server";

/** A reader is behind once this many bytes wait for it. */
export const BEHIND_BYTES = 64 * 1024;
/** Bytes that may wait for a reader, besides one last message. Replaying a broken stream needs the most. */
export const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Returns a key that messages share if the newer replaces the older for a slow reader. `undefined`: the message has
 * to be delivered.
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

/** Newest messages that wait until their reader has read the earlier ones. */
export class LatestOnly<Message> {
  readonly #messages = new Map<string, Message>();

  /** Keeps the message behind all others, and drops an older one with the same key. */
  keep(key: string, message: Message): void {
    this.#messages.delete(key);
    this.#messages.set(key, message);
  }

  /** Returns all messages in the order of their arrival, and drops them. */
  take(): Message[] {
    const messages = [...this.#messages.values()];
    this.#messages.clear();
    return messages;
  }
}
