import { type Server, createServer } from "node:http";
import type { PageServer } from "../protocol/deps.ts";
import { LinkSignIn, type LinkSignInOptions } from "./link-sign-in.ts";
import { Pages, type PagesOptions } from "./pages.ts";
import { Reply, isFrom } from "./responses.ts";

const HOST = "127.0.0.1";
const CUT_INTERVAL_MS = 20;

export interface PageServerOptions extends Omit<PagesOptions, "signIn" | "base">, LinkSignInOptions {
  /** The port to be served at; when it is taken, any other. Default: any. */
  port?: number;
}

/** Serves the page on a loopback port. It does not keep the process alive. */
export async function openPageServer(options: PageServerOptions): Promise<PageServer> {
  const signIn = new LinkSignIn(options);
  const pages = new Pages({ ...options, signIn });
  const server = createServer((request, response) => {
    // A page whose domain was rebound to this machine names another host.
    if (request.headers.host === signIn.host && isFrom(request, [`http://${signIn.host}`])) {
      void pages.serve(request, response);
    } else new Reply(request, response).text(403, "text/plain", "Forbidden");
  });
  const port = await listen(server, options.port ?? 0).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return listen(server, 0);
    throw error;
  });
  signIn.host = `${HOST}:${port}`;
  server.unref();
  return {
    address: `http://${signIn.host}/`,
    link: (link) => signIn.link(link),
    close: async () => {
      pages.stop.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      // Browsers connect ahead of need, so connections that were just being accepted are closed too.
      const cut = setInterval(() => server.closeAllConnections(), CUT_INTERVAL_MS);
      await closed;
      clearInterval(cut);
    },
  };
}

function listen(server: Server, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(wanted, HOST, () => {
      server.off("error", reject);
      const address = server.address();
      if (address !== null && typeof address === "object") resolve(address.port);
      else reject(new Error("the page server has no port"));
    });
  });
}
