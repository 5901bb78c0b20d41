/** A web server of this machine to which a browser comes back from a log-in. */
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { LoginFailed } from "../agent/mcp-tools/authorize.ts";
import { codeOf } from "../core/errors.ts";
import { parsedUrl } from "../core/unknown.ts";

export interface LoginCallback {
  address: string;
  /** The parameters with which it comes back to this log-in. Rejects with `LoginFailed` after ten minutes. */
  answerTo(state: string): Promise<URLSearchParams>;
  close(): void;
}

const PAGE = `<!doctype html><meta charset="utf-8"><title>deepagent-mcp</title>
<p>The terminal has your answer. You can close this tab.</p>`;

/**
 * `port`: default a free one. `host`: this machine, as the address names it; browsers try both of its addresses.
 *
 * @throws LoginFailed if the port is in use.
 */
export async function openLoginCallback(
  port = 0,
  host: "127.0.0.1" | "localhost" = "127.0.0.1",
): Promise<LoginCallback> {
  const answers = new EventEmitter<Record<string, [URLSearchParams]>>();
  const server = createServer((request, response) => {
    // Joined as text, because a path of two slashes would be resolved as another host.
    const address = `http://127.0.0.1${request.url ?? "/"}`;
    const { pathname, searchParams } = parsedUrl(address) ?? new URL("http://127.0.0.1");
    const state = searchParams.get("state") ?? "";
    const isAnswer = pathname === "/callback" && answers.emit(`state ${state}`, searchParams);
    const headers = {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'",
    };
    response.writeHead(isAnswer ? 200 : 404, headers).end(isAnswer ? PAGE : "");
  });
  server.listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    if (codeOf(error) !== "EADDRINUSE") throw error;
    throw new LoginFailed(`Port ${port} is in use. Free it, or set another oauth.callbackPort.`);
  }
  return {
    address: `http://${host}:${(server.address() as AddressInfo).port}/callback`, // a TCP server has such an address
    answerTo: async (state) => {
      try {
        const [answer] = await once(answers, `state ${state}`, { signal: AbortSignal.timeout(600_000) });
        return answer as URLSearchParams; // the only value that is emitted
      } catch {
        throw new LoginFailed("Nobody logged in within ten minutes. Begin again.");
      }
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
