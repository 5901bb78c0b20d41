import { once } from "node:events";
import { createServer } from "node:http";
import type { PageServer } from "../contracts/deps.ts";
import { LinkSignIn, type LinkSignInOptions } from "./link-sign-in.ts";
import type { SharedRuns } from "../../runs/shares.ts";
import { Pages, type PagesOptions } from "./pages.ts";
import { Reply, isFrom } from "./responses.ts";
import { SharedLinks, SharingSignIn } from "./shared-links.ts";

const HOST = "127.0.0.1";

export interface PageServerOptions
  extends Omit<PagesOptions, "signIn" | "base" | "sharing" | "ownAddress">, LinkSignInOptions {
  /** Finds runs by links to them. Default: no links are made. */
  sharedRuns?: () => Promise<SharedRuns>;
}

/**
 * Serves the page on a loopback port. It does not keep the process alive.
 *
 * The system chooses the port, so that each server has an origin of its own: pages and service workers of another
 * program that listened on a known port earlier would be of the same origin, and could act as the page.
 */
export async function openPageServer(options: PageServerOptions): Promise<PageServer> {
  const signIn = new LinkSignIn(options);
  const { key, sharedRuns, logger } = options;
  const localHost = () => signIn.host;
  const sharing = sharedRuns && new SharedLinks({ key: async () => key, runs: sharedRuns, localHost });
  const pages = new Pages({
    ...options,
    ownAddress: () => `http://${signIn.host}`,
    ...(sharing === undefined ? { signIn } : { signIn: new SharingSignIn(signIn, sharing, logger), sharing }),
  });
  const server = createServer((request, response) => {
    // A page whose domain was rebound to this machine names another host.
    if (request.headers.host === signIn.host && isFrom(request, [`http://${signIn.host}`])) {
      void pages.serve(request, response);
    } else new Reply(request, response).text(403, "text/plain", "Forbidden");
  });
  await once(server.listen(0, HOST), "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the page server has no port");
  signIn.serveAt(`${HOST}:${address.port}`);
  server.unref();
  return {
    address: `http://${signIn.host}/`,
    link: (link) => signIn.link(link),
    close: async () => {
      pages.stop.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      // Browsers connect ahead of need, so connections that were just being accepted are closed too.
      const cut = setInterval(() => server.closeAllConnections(), 20);
      await closed;
      clearInterval(cut);
    },
  };
}
