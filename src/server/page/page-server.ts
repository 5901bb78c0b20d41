import { randomUUID } from "node:crypto";
import { type Server, createServer } from "node:http";
import type { PageServer } from "../protocol/deps.ts";
import { renderNotice } from "../views/room/shell.ts";
import { Pages, type PagesOptions } from "./pages.ts";
import { sendHtml } from "./responses.ts";

const HOST = "127.0.0.1";
const CUT_INTERVAL_MS = 20;

export interface PageServerOptions extends PagesOptions {
  /** The port to be served at; when it is taken, any other. Default: any. */
  port?: number;
}

/** Serves the page on a loopback port. It does not keep the process alive. */
export async function openPageServer(options: PageServerOptions): Promise<PageServer> {
  const pages = new Pages(options);
  const server = createServer((request, response) => {
    pages.serve(request, response).catch((error: unknown) => {
      const reference = randomUUID();
      options.logger.error("page.failed", { reference, error });
      if (response.headersSent) response.end();
      else sendHtml(response, 500, renderNotice("Something went wrong", `Look for ${reference} in the log.`));
    });
  });
  const port = await listen(server, options.port ?? 0).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return listen(server, 0);
    throw error;
  });
  pages.host = `${HOST}:${port}`;
  server.unref();
  return {
    address: `http://${pages.host}/`,
    link: (link) => pages.link(link),
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
