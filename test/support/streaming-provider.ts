import { createServer } from "node:http";
import { type Json, record } from "./wire-server-protocol.ts";
import { addressOf } from "./http-address.ts";

/** A provider that answers each request with the stream of its number, counted from 0, and keeps the requests. It has no list of models. */
export async function streamingProvider(
  stream: (number: number) => string,
): Promise<{ url: string; requests: Json[] }> {
  const requests: Json[] = [];
  const server = createServer((request, response) => {
    if (request.method !== "POST") return void response.writeHead(404).end();
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      requests.push(record(JSON.parse(Buffer.concat(parts).toString("utf8"))));
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(stream(requests.length - 1));
    });
  });
  return { url: await addressOf(server), requests };
}
