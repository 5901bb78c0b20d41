/** Answers of `node:http` as those of `fetch`. */
import type { IncomingMessage } from "node:http";

/** Statuses whose answers have no body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** The head of an answer for `new Response`, which takes no body unless it `hasBody`. */
export function headOfAnswer({
  statusCode: status = 0,
  statusMessage = "",
  headersDistinct,
}: IncomingMessage) {
  const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return { hasBody: !BODILESS.has(status), head: { status, statusText: statusMessage, headers } };
}
