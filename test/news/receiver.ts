import { createServer, type IncomingHttpHeaders } from "node:http";
import { addressOf } from "../support/http-address.ts";

interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Receiver {
  url: string;
  received: Received[];
  /** Statuses of the next answers, then 200. 0: never answers. */
  statuses: number[];
  /** Headers of all answers. */
  headers: Record<string, string>;
}

/** Listens on this machine for messages. `answer`: the body of an answer; by default it is long. */
export async function startReceiver(
  answer: (body: string) => string = () => "x".repeat(100_000),
): Promise<Receiver> {
  const receiver: Receiver = { url: "", received: [], statuses: [], headers: {} };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      receiver.received.push({ path: request.url ?? "", headers: request.headers, body });
      const status = receiver.statuses.shift() ?? 200;
      if (status === 0) return;
      // An endless answer is nobody's problem but the receiver's.
      response.writeHead(status, receiver.headers);
      response.write(answer(body));
      if (status !== 299) response.end();
    });
  });
  receiver.url = await addressOf(server);
  return receiver;
}
