import type { ServerResponse } from "node:http";

/** Milliseconds in which a client has to read some of the waiting output. */
const PATIENCE_MS = 60_000;

/** Calls `stalled` when the client has read none of the waiting output for `patienceMs`, by default 60 seconds. */
export function whenStalled(
  response: ServerResponse,
  stalled: () => void,
  patienceMs: number = PATIENCE_MS,
): void {
  // A socket is also idle while there is nothing to send.
  response.setTimeout(patienceMs, () => {
    if (response.writableLength > 0) stalled();
  });
}
