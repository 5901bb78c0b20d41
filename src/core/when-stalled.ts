import type { ServerResponse } from "node:http";

/** Calls `stalled` when the client has read none of the waiting output for `patienceMs`, by default 60 seconds. */
export function whenStalled(response: ServerResponse, stalled: () => void, patienceMs = 60_000): void {
  // A socket is also idle while there is nothing to send.
  response.setTimeout(patienceMs, () => {
    if (response.writableLength > 0) stalled();
  });
}
