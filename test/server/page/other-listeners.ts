/** Other programs on ports of this machine, and a way to the page that can be cut. */
import { once } from "node:events";
import { type RequestListener, type Server, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { cleanUpWith } from "../../runs/support.ts";

/** Another program on a loopback port. Default: any. */
export async function listenAt(
  port: number,
  answer: RequestListener,
): Promise<{ port: number; server: Server }> {
  const server = createServer(answer).listen(port, "127.0.0.1");
  cleanUpWith(() => server.close().closeAllConnections());
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, server }; // it listens on a port
}

/** Lets a server of the page answer at another port: a server that is started again could be given it. */
export const answersFrom = (address: string): RequestListener => {
  const { port, origin, host } = new URL(address);
  return (asked, response) => {
    const headers = { ...asked.headers, host, ...(asked.headers.origin ? { origin } : {}) };
    const forwarded = { host: "127.0.0.1", port, path: asked.url, method: asked.method, headers };
    const passed = request(forwarded, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    passed.once("error", () => response.destroy());
    asked.pipe(passed);
  };
};

/** The way of a browser to a server. */
export interface Way {
  /** The same link on this way. */
  link(link: string): string;
  /** Ends all connections, and takes no new ones. */
  cut(): Promise<void>;
  mend(): Promise<void>;
}

export async function wayTo(address: string): Promise<Way> {
  const answer = answersFrom(address);
  let { port, server } = await listenAt(0, answer);
  return {
    link: (link) => link.replace(new URL(address).host, `127.0.0.1:${port}`),
    cut: async () => {
      server.close().closeAllConnections();
      await once(server, "close");
    },
    mend: async () => {
      ({ port, server } = await listenAt(port, answer));
    },
  };
}
