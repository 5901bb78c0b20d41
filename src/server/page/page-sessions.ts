import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { PageGrant } from "./link-token.ts";

/** One browser that redeemed a link. */
export interface PageSession extends PageGrant {
  /** Has to come with every decision. */
  csrf: string;
  expires: number;
}

/** Who looks at a run: a browser, or an MCP App in a host, which only looks. */
export type Viewer = PageSession | "app";

/** A viewer of approvals, who may have to go to a terminal to decide. */
export interface ApprovalViewer {
  session: Viewer;
  /** A line to paste there; `undefined`: a terminal does not show the run. */
  openCommand: string | undefined;
}

const LIFETIME_MS = 12 * 60 * 60 * 1000;
const CAPACITY = 1000;

/** Sessions of one page server, each bound to one run; gone when the server closes. */
export class PageSessions {
  readonly #sessions = new Map<string, PageSession>();
  readonly #clock: Clock;
  /** Of this server alone: browsers do not tell apart the ports of a host. */
  readonly #cookie = `deepagent_page_${randomBytes(6).toString("hex")}`;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The cookie of a new session. It is sent for its run's addresses only. */
  open(grant: PageGrant): string {
    const id = randomBytes(32).toString("base64url");
    const { run, principal, purpose } = grant;
    this.#sessions.set(id, {
      run,
      principal,
      purpose,
      csrf: randomBytes(32).toString("base64url"),
      expires: this.#clock() + LIFETIME_MS,
    });
    const oldest = this.#sessions.keys().next();
    if (this.#sessions.size > CAPACITY && oldest.done !== true) this.#sessions.delete(oldest.value);
    const age = Math.floor(LIFETIME_MS / 1000);
    return `${this.#cookie}=${id}; Path=${runPath(run)}; Max-Age=${age}; HttpOnly; SameSite=Strict`;
  }

  /** The session of a request, when it is one of this run's. */
  find(request: IncomingMessage, run: string): PageSession | undefined {
    const cookies = (request.headers.cookie ?? "").split(";").map((cookie) => cookie.trim());
    for (const cookie of cookies) {
      if (!cookie.startsWith(`${this.#cookie}=`)) continue;
      const session = this.#sessions.get(cookie.slice(this.#cookie.length + 1));
      if (session !== undefined && session.run === run && session.expires > this.#clock()) return session;
    }
    return undefined;
  }
}

/** Address of a run's page on its server. */
export const runPath = (run: string): string => `/runs/${encodeURIComponent(run)}`;

/** Address of what it did to one file. */
export const changesPath = (run: string, path: string): string =>
  `${runPath(run)}/changes?path=${encodeURIComponent(path)}`;

/** Whether a form came out of a page of this session. */
export function isOwnForm(session: PageSession, csrf: string): boolean {
  const given = Buffer.from(csrf);
  const expected = Buffer.from(session.csrf);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
