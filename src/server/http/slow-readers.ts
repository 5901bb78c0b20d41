import type { ServerResponse } from "node:http";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { orElse } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { whenStalled } from "../../core/concurrency.ts";
import { BEHIND_BYTES, LatestOnly, MOST_BYTES, supersededBy } from "../stdio/output-bounds.ts";
import type { Counter } from "./operations.ts";

type Write = (chunk: Uint8Array | string) => boolean;

/**
 * Bounds the output that waits for clients that do not read. Of messages that replace each other a slow client gets
 * only the newest, after the rest. A client that reads nothing for a minute loses its connection, and can ask
 * for the rest on the next. Runs and other clients are not affected.
 *
 * Call the guard before anything is written. The SDK's adapters would buffer unseen for a slow reader, so they never
 * learn of one: everything that waits is counted in one place.
 */
export const slowReaderGuard =
  ({ logger, patienceMs, cut }: { logger: Logger; patienceMs?: number | undefined; cut: Counter }) =>
  (response: ServerResponse): void => {
    const write: Write = response.write.bind(response);
    const latest = new LatestOnly<Uint8Array>();
    const sendLatest = (): void => {
      for (const frame of latest.take()) write(frame);
    };
    const end = (reason: "too_much" | "stalled"): void => {
      cut.count(reason);
      logger.warn("http.reader_cut", { reason, waiting: response.writableLength });
      response.destroy();
    };
    const guarded: Write = (chunk) => {
      const key = response.writableLength > BEHIND_BYTES ? frameKey(chunk) : undefined;
      if (key === KEEP_ALIVE) return true;
      if (key !== undefined && typeof chunk !== "string") {
        latest.keep(key, chunk);
        return true;
      }
      if (response.writableLength > MOST_BYTES) {
        end("too_much");
        return false;
      }
      // Keeps the order, because the client resumes after the last id it has read.
      sendLatest();
      write(chunk);
      return true;
    };
    response.write = guarded as ServerResponse["write"]; // callers here pass no encoding or callback
    response.on("drain", sendLatest);
    whenStalled(response, () => end("stalled"), patienceMs);
  };

const KEEP_ALIVE = "keep-alive";
/** Returns the key by which a newer frame of an event stream replaces this one. The SDK writes each in one piece. */
function frameKey(chunk: Uint8Array | string): string | undefined {
  if (typeof chunk === "string" || chunk.length > BEHIND_BYTES) return undefined;
  if (chunk[0] === 0x3a) return KEEP_ALIVE; // ":"
  const data = /^data: (.*)$/m.exec(Buffer.from(chunk).toString("utf8"))?.[1];
  if (data === undefined || data === "") return undefined;
  // All that the SDK sends are such messages.
  return orElse(() => supersededBy(JSON.parse(data) as JSONRPCMessage), undefined);
}
