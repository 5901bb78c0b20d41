import { randomUUID } from "node:crypto";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { type Run, alreadyDecided } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import type { PageServer } from "../protocol/deps.ts";
import { ASSETS, renderChanges, renderNotice, renderOpening, renderRunPage } from "../views/render-page.ts";
import type { Complaint } from "../views/render-run.ts";
import OPEN_SCRIPT from "./assets/open.browser.js" with { type: "text" };
import PAGE_STYLE from "./assets/page.css" with { type: "text" };
import PAGE_SCRIPT from "./assets/page.browser.js" with { type: "text" };
import { pageDecision } from "./decision.ts";
import { isAllowed, readForm, redirect, sendHtml, sendText } from "./responses.ts";
import { LinkTokens, type PageSession, PageSessions, isOwnForm, runPath } from "./sessions.ts";
import { readChanges, readRun, sendUpdates } from "./updates.ts";

export interface PageServerOptions {
  runs: () => Promise<PrincipalRuns>;
  clock: Clock;
  /** How a person opens a page that decides. */
  openCommand: (run: Run) => string | undefined;
  logger: Logger;
}

const HOST = "127.0.0.1";
const CUT_INTERVAL_MS = 20;
/** Browsers that may follow runs at one time. */
const MAX_UPDATES = 64;

/** Serves pages of runs on a free loopback port. It does not keep the process alive. */
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
  const port = await listen(server);
  pages.host = `${HOST}:${port}`;
  server.unref();
  return {
    link: (grant) => `http://${pages.host}/open?token=${pages.tokens.mint(grant)}`,
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

class Pages {
  host = "";
  readonly stop = new AbortController();
  readonly tokens: LinkTokens;
  readonly #sessions: PageSessions;
  readonly #options: PageServerOptions;
  #updates = 0;

  constructor(options: PageServerOptions) {
    this.#options = options;
    this.tokens = new LinkTokens(options.clock);
    this.#sessions = new PageSessions(options.clock);
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isAllowed(request, this.host)) return sendText(response, 403, "text/plain", "Forbidden");
    const { method = "" } = request;
    // The address is joined as text, because a path of two slashes would be resolved as another host.
    const address = `http://${this.host}${request.url ?? "/"}`;
    if (!URL.canParse(address)) return sendHtml(response, 404, NOTHING);
    const url = new URL(address);
    const asset = FILES[url.pathname];
    if (method === "GET" && asset !== undefined) return sendText(response, 200, asset.type, asset.text);
    if (url.pathname === "/open") return this.#open(request, response, url);
    const [, run = "", action = ""] = RUN_ADDRESS.exec(url.pathname) ?? [];
    const session = run === "" ? undefined : this.#sessions.find(request, decoded(run));
    if (session === undefined) return sendHtml(response, 404, NOTHING);
    if (method === "GET" && action === "") return this.#show(response, session);
    if (method === "GET" && action === "/updates") return this.#follow(response, session);
    if (method === "GET" && action === "/changes") {
      return this.#changes(response, session, url.searchParams.get("path") ?? "");
    }
    if (method === "POST" && action === "/decide") return this.#decide(request, response, session);
    return sendHtml(response, 405, NOTHING);
  }

  async #open(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    if (request.method === "GET") {
      const token = url.searchParams.get("token") ?? "";
      if (this.tokens.inspect(token) === undefined) return sendHtml(response, 403, SPENT);
      return sendHtml(response, 200, renderOpening(token));
    }
    const form = request.method === "POST" ? await readForm(request) : undefined;
    const grant = this.tokens.redeem(form?.get("token") ?? "");
    if (grant === undefined) {
      this.#options.logger.warn("page.link_refused");
      return sendHtml(response, 403, SPENT);
    }
    this.#options.logger.info("page.opened", { runId: grant.run, purpose: grant.purpose });
    return redirect(response, runPath(grant.run), this.#sessions.open(grant));
  }

  async #show(response: ServerResponse, session: PageSession, complaint?: Complaint): Promise<void> {
    const now = await readRun(await this.#options.runs(), session);
    if (now === undefined) return sendHtml(response, 404, NOTHING);
    const openCommand = this.#options.openCommand(now.view.run);
    const page = { ...now, session, openCommand, ...(complaint === undefined ? {} : { complaint }) };
    sendHtml(response, complaint === undefined ? 200 : 422, renderRunPage(page));
  }

  async #changes(response: ServerResponse, session: PageSession, path: string): Promise<void> {
    const changes = await readChanges(await this.#options.runs(), session, path);
    if (changes === undefined) return sendHtml(response, 404, NOTHING);
    sendHtml(response, 200, renderChanges(session.run, path, changes));
  }

  async #follow(response: ServerResponse, session: PageSession): Promise<void> {
    if (this.#updates >= MAX_UPDATES) return sendText(response, 503, "text/plain", "Too many pages are open");
    this.#updates += 1;
    try {
      const { runs, openCommand } = this.#options;
      await sendUpdates(response, await runs(), { session, openCommand }, this.stop.signal);
    } finally {
      this.#updates -= 1;
    }
  }

  async #decide(request: IncomingMessage, response: ServerResponse, session: PageSession): Promise<void> {
    const { logger } = this.#options;
    const form = await readForm(request);
    if (form === undefined) return sendHtml(response, 400, UNREADABLE);
    if (session.purpose !== "decide" || !isOwnForm(session, form.get("csrf") ?? "")) {
      logger.warn("page.decision_refused", { runId: session.run, purpose: session.purpose });
      return sendHtml(response, 403, MAY_NOT);
    }
    const approvalId = form.get("approval") ?? "";
    const complain = (problem: string): Promise<void> =>
      this.#show(response, session, { approvalId, problem, form });
    const runs = await this.#options.runs();
    const view = await runs.view(session.principal, session.run);
    const approval = view?.approvals.find(({ id }) => id === approvalId);
    if (approval === undefined) return complain("There is no such approval in this run.");
    if (approval.status !== "pending") return complain(alreadyDecided(approval));
    const read = pageDecision(approval, form);
    if (!read.ok) return complain(read.problem);
    const outcome = await runs.decide(session.principal, session.run, approvalId, read.decision, "page");
    if (!outcome.ok) return complain(outcome.message);
    if (outcome.repeated) return complain(alreadyDecided(outcome.approval));
    return redirect(response, runPath(session.run));
  }
}

const RUN_ADDRESS = /^\/runs\/([^/]+)(\/updates|\/changes|\/decide)?$/;

const FILES: Readonly<Record<string, { type: string; text: string }>> = {
  [ASSETS.style]: { type: "text/css", text: PAGE_STYLE },
  [ASSETS.script]: { type: "text/javascript", text: PAGE_SCRIPT },
  [ASSETS.opener]: { type: "text/javascript", text: OPEN_SCRIPT },
};

const ANOTHER = "Ask for a new link: check_deep_agent gives one, and so does `runs open` in a terminal.";
const SPENT = renderNotice("This link cannot be used", `It was used before, or is too old. ${ANOTHER}`);
const NOTHING = renderNotice("Nothing to see here", `This browser has not opened that run. ${ANOTHER}`);
const UNREADABLE = renderNotice("The form could not be read", "Go back, reload the page and try again.");
const MAY_NOT = renderNotice(
  "This page may not decide",
  "Nothing was decided. Go back to the page of the run, which says where decisions are made.",
);

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, HOST, () => {
      const address = server.address();
      if (address !== null && typeof address === "object") resolve(address.port);
      else reject(new Error("the page server has no port"));
    });
  });
}
