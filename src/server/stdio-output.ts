import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { BEHIND_BYTES, HeldBack, MOST_BYTES, supersededBy } from "./superseded.ts";

/**
 * Bounds what waits for a client that does not read: to one that is behind only the newest of what supersedes
 * itself is sent, once it has read the rest, and its requests wait while too many answers do.
 */
export function boundOutput(transport: Transport, stdin: Readable, stdout: Writable): void {
  const send = transport.send.bind(transport);
  const held = new HeldBack<JSONRPCMessage>();
  const sendHeld = (): void => {
    // A client that has gone does not miss it.
    for (const message of held.take()) send(message).catch(() => undefined);
  };
  let isWaiting = false;
  // Each message that waits listens to the stream.
  stdout.setMaxListeners(0);
  stdout.on("drain", () => {
    sendHeld();
    if (isWaiting) stdin.resume();
    isWaiting = false;
  });
  transport.send = async (message, options) => {
    const key = stdout.writableLength > BEHIND_BYTES ? supersededBy(message) : undefined;
    if (key !== undefined) return held.hold(key, message);
    sendHeld();
    const sent = send(message, options);
    if (stdout.writableLength > MOST_BYTES) {
      isWaiting = true;
      stdin.pause();
    }
    return sent;
  };
}
