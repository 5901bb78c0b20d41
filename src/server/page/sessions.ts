/** Links that open a page once, and the sessions of browsers that followed one. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Principal } from "../../runs/run.ts";

/** One browser that redeemed a link. */
export interface PageSession extends PageGrant {
  /** Has to come with every decision. */
  csrf: string;
}

/** The viewer of a run: a browser, or an MCP App in a host, which only looks. */
export type Viewer = PageSession | "app";

/** A viewer of approvals, who may have to go to a terminal to decide. */
export interface ApprovalViewer {
  session: Viewer;
  /** A line to paste there; `undefined`: a terminal does not show the run. */
  openCommand: string | undefined;
}

const LIFETIME_MS = 12 * 60 * 60 * 1000;
const MAX_LINKS = 10_000;
const MAX_SESSIONS = 1000;

/** Values by secret ids, in the memory of one server. They expire, and the oldest makes room for a new one. */
class Secrets<Value extends object> {
  readonly #values = new Map<string, Value & { expires: number }>();
  readonly #clock: Clock;
  readonly #capacity: number;

  constructor(clock: Clock, capacity: number) {
    this.#clock = clock;
    this.#capacity = capacity;
  }

  add(value: Value): string {
    const id = newSecret();
    this.#values.set(id, { ...value, expires: this.#clock() + LIFETIME_MS });
    const oldest = this.#values.keys().next();
    if (this.#values.size > this.#capacity && oldest.done !== true) this.#values.delete(oldest.value);
    return id;
  }

  get(id: string): Value | undefined {
    const value = this.#values.get(id);
    return value !== undefined && value.expires > this.#clock() ? value : undefined;
  }

  delete(id: string): void {
    this.#values.delete(id);
  }
}

const newSecret = (): string => randomBytes(32).toString("base64url");

/** Tokens in links to the page: good once, for one run, one principal and one purpose. */
export class LinkTokens {
  readonly #grants: Secrets<PageGrant>;

  constructor(clock: Clock) {
    this.#grants = new Secrets(clock, MAX_LINKS);
  }

  mint({ run, principal, purpose }: PageGrant): string {
    return this.#grants.add({ run, principal, purpose });
  }

  /** Returns what the token grants, without using it up; `undefined` when it grants nothing (any more). */
  inspect(token: string): PageGrant | undefined {
    return this.#grants.get(token);
  }

  /** Uses the token up, and returns what it granted. */
  redeem(token: string): PageGrant | undefined {
    const grant = this.#grants.get(token);
    this.#grants.delete(token);
    return grant;
  }
}

/** Sessions of one page server, each bound to one run; gone when the server closes. */
export class PageSessions {
  readonly #sessions: Secrets<PageSession>;
  /** The name belongs to this server alone: browsers do not tell apart the ports of a host. */
  readonly #cookie = `deepagent_page_${randomBytes(6).toString("hex")}`;

  constructor(clock: Clock) {
    this.#sessions = new Secrets(clock, MAX_SESSIONS);
  }

  /** Opens a session and returns its cookie, which is sent for its run's addresses only. */
  open({ run, principal, purpose }: PageGrant): string {
    const id = this.#sessions.add({ run, principal, purpose, csrf: newSecret() });
    const age = LIFETIME_MS / 1000;
    return `${this.#cookie}=${id}; Path=${runPath(run)}; Max-Age=${age}; HttpOnly; SameSite=Strict`;
  }

  /** Finds the session of a request, when it is one of this run's. */
  find(request: IncomingMessage, run: string): PageSession | undefined {
    const cookies = (request.headers.cookie ?? "").split(";").map((cookie) => cookie.trim());
    const ids = cookies.filter((cookie) => cookie.startsWith(`${this.#cookie}=`));
    return ids
      .map((cookie) => this.#sessions.get(cookie.slice(this.#cookie.length + 1)))
      .find((session) => session?.run === run);
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

/** `watch`: look at the run. `decide`: also decide on its approvals; never given to a model. */
export type PagePurpose = "watch" | "decide";

export interface PageGrant {
  run: string;
  principal: Principal;
  purpose: PagePurpose;
}
