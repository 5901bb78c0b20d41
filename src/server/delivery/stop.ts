import type { Config } from "../../config/schema.ts";

/** Why a call that waited is not waited for any more. */
export type Leaving = "cancellation" | "disconnect";

/**
 * Tells a person's cancel from a client that stopped listening, by the reason of the request's signal. Only a
 * `notifications/cancelled` carries a text; clients send it for their time-outs too, and say so in it. One
 * without a text, and the closed stream that cancels over HTTP since 2026-07-28, could be either: nobody is
 * taken to have cancelled then.
 */
export function leavingBy(reason: unknown): Leaving {
  return typeof reason === "string" && !TIMED_OUT.test(reason) ? "cancellation" : "disconnect";
}

const TIMED_OUT = /time[sd]?[ -]?out|deadline|-32001/i;

/** Whether the run ends together with the call. */
export function stopsRun(leaving: Leaving, on: Config["delivery"]["stopRunOn"]): boolean {
  return on === "disconnect" || (on === "cancellation" && leaving === "cancellation");
}
