import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { INITIALIZE, send, sessionHeaders } from "./clients-raw.ts";

const CLIENT = { name: "slow", version: "1" };

/** A client that has asked for something and does not read what comes. */
export interface SlowClient {
  /** Reads on until `enough` is in what came, or the server closes the connection; gives all that came. */
  readUntil(enough: string): Promise<string>;
}

/** What a request of one protocol era is sent with. */
export type Asker = (
  method: string,
  params?: Record<string, unknown>,
) => Promise<{ headers: Record<string, string>; body: object }>;

/** Requests of 2026-07-28. */
export const modernAsker: Asker = async (method, params = {}) => ({
  headers: {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(typeof params["name"] === "string" ? { "mcp-name": params["name"] } : {}),
  },
  body: {
    jsonrpc: "2.0",
    id: 2,
    method,
    params: {
      ...params,
      _meta: {
        ...(params["_meta"] as object | undefined), // of the protocol's form
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  },
});

/** Requests of 2025-11-25, each in a session of its own. */
export const legacyAsker =
  (url: string): Asker =>
  async (method, params = {}) => ({
    headers: await openSession(url),
    body: { jsonrpc: "2.0", id: 2, method, params },
  });

/** The headers of a new 2025-era session. */
export async function openSession(url: string): Promise<Record<string, string>> {
  const session = sessionHeaders(await send(url, { body: INITIALIZE }));
  await send(url, { headers: session, body: '{"jsonrpc":"2.0","method":"notifications/initialized"}' });
  return session;
}

/** Sends a request, by GET when it has no body, and reads nothing until it is told to. */
export async function askWithoutReading(
  url: string,
  { headers, body }: { headers: Record<string, string>; body?: object },
): Promise<SlowClient> {
  const { hostname, port, pathname } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  socket.pause().on("error", () => {}); // a connection that is cut may be reset
  onTestFinished(() => void socket.destroy());
  await new Promise((resolve) => void socket.once("connect", resolve));
  const text = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${body === undefined ? "GET" : "POST"} ${pathname} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    `accept: ${body === undefined ? "" : "application/json, "}text/event-stream`,
    ...(body === undefined
      ? []
      : ["content-type: application/json", `content-length: ${Buffer.byteLength(text)}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n${text}`);
  let came = "";
  const readUntil = (enough: string): Promise<string> =>
    new Promise((resolve) => {
      let last = came;
      const look = (part: string): void => {
        came += part;
        const lately = last + part;
        if (lately.includes(enough)) resolve(came);
        last = lately.slice(-enough.length);
      };
      socket
        .setEncoding("utf8")
        .on("data", look)
        .once("close", () => resolve(came));
      socket.resume();
    });
  return { readUntil };
}
