/** What browsers may see and do, and the cookies of those that followed a link. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { SCOPES, type Scope } from "../../config/sections.ts";
import type { Clock } from "../../core/clock.ts";
import type { Principal } from "../../runs/run.ts";
import { isSame } from "./find-page.ts";

/** `watch`: look. `decide`: also decide on approvals, start runs and end them; never given to a model. */
export type PagePurpose = "watch" | "decide";

/** What a link of this server grants. */
export interface PageGrant {
  principal: Principal;
  purpose: PagePurpose;
  /** The only run that it shows; absent: all of the principal. */
  run?: string;
}

/** What a link opens. */
export interface PageLink extends PageGrant {
  /** The run whose page it opens first, where it shows all. */
  first?: string;
}

/** One browser that is known. */
export interface PageSession {
  principal: Principal;
  /** What it may do, as for a token of an MCP client. */
  scopes: readonly Scope[];
  /** The only run that it shows; absent: all of the principal. */
  run?: string;
  /** Has to come with everything that changes something. */
  csrf: string;
  /** Whether a person logged in, and can log out. */
  isLoggedIn?: boolean;
}

/** The viewer of a run: a browser, or an MCP App in a host, which only looks. */
export type Viewer = PageSession | "app";

export const mayDecide = (viewer: Viewer): viewer is PageSession => may(viewer, "approve");

/** Whether it may start runs, tell them something and end them, and change memories. */
export const mayRun = (viewer: Viewer): viewer is PageSession => may(viewer, "run");

export const may = (viewer: Viewer, scope: Scope): viewer is PageSession =>
  viewer !== "app" && viewer.scopes.includes(scope);

/** A viewer of approvals, who may have to go to a terminal to decide. */
export interface ApprovalViewer {
  session: Viewer;
  /** A line to paste there; `undefined`: a terminal does not show the run. */
  openCommand: string | undefined;
}

/** How long a browser is known, in milliseconds. */
export const LIFETIME_MS = 12 * 60 * 60 * 1000;
const SCOPES_OF: Readonly<Record<PagePurpose, readonly Scope[]>> = { watch: ["read"], decide: SCOPES };

const Ticket = z.object({
  principal: z.string(),
  purpose: z.enum(["watch", "decide"]),
  run: z.string().optional(),
  expires: z.number(),
  id: z.string(),
});

/**
 * Sessions are signed tickets in cookies, so that they outlive the server: one that is started again with the same
 * key at the same address goes on with the pages that are open.
 */
export class PageSessions {
  readonly #key: Uint8Array;
  readonly #clock: Clock;
  /** Belongs to this key: browsers do not tell apart the ports of a host. */
  readonly #cookie: string;

  /** `key`: a secret of at least 32 bytes. */
  constructor(key: Uint8Array, clock: Clock) {
    this.#key = key;
    this.#clock = clock;
    this.#cookie = `deepagent_page_${createHash("sha256").update("cookie").update(key).digest("hex").slice(0, 12)}`;
  }

  /** Opens a session and returns its cookie, which is sent for what it shows only. */
  open({ principal, purpose, run }: PageGrant): string {
    const ticket = {
      principal,
      purpose,
      expires: this.#clock() + LIFETIME_MS,
      id: randomBytes(16).toString("base64url"),
      ...(run === undefined ? {} : { run }),
    };
    const text = Buffer.from(JSON.stringify(ticket)).toString("base64url");
    const value = `${text}.${this.#sign("session", text)}`;
    const path = run === undefined ? "/" : runPath(run);
    return `${this.#cookie}=${value}; Path=${path}; Max-Age=${LIFETIME_MS / 1000}; HttpOnly; SameSite=Strict`;
  }

  /** Finds the session of a request that shows this run, or all of them; one that decides comes first. */
  find(request: IncomingMessage, run: string | undefined): PageSession | undefined {
    const cookies = (request.headers.cookie ?? "").split(";").map((cookie) => cookie.trim());
    const sessions = cookies
      .filter((cookie) => cookie.startsWith(`${this.#cookie}=`))
      .map((cookie) => this.#read(cookie.slice(this.#cookie.length + 1)))
      .filter((session) => session !== undefined)
      .filter((session) => session.run === undefined || session.run === run);
    return sessions.find(mayDecide) ?? sessions[0];
  }

  #read(value: string): PageSession | undefined {
    const [text = "", signature = ""] = value.split(".");
    if (!isSame(signature, this.#sign("session", text))) return undefined;
    const { principal, purpose, run, expires } = Ticket.parse(
      JSON.parse(Buffer.from(text, "base64url").toString("utf8")),
    );
    if (expires <= this.#clock()) return undefined;
    const scopes = SCOPES_OF[purpose];
    return { principal, scopes, csrf: this.#sign("csrf", text), ...(run === undefined ? {} : { run }) };
  }

  #sign(use: string, text: string): string {
    return createHmac("sha256", this.#key).update(`page ${use} ${text}`).digest("base64url");
  }
}

/** Address of a run's page on its server. */
export const runPath = (run: string): string => `/runs/${encodeURIComponent(run)}`;

/** Address of the whole call that began with this event. */
export const stepPath = (run: string, seq: number): string => `${runPath(run)}/steps/${seq}`;

/** Address of all that a call would do which waits for approval. */
export const callPath = (run: string, approval: string): string =>
  `${runPath(run)}/call?${new URLSearchParams({ approval }).toString()}`;

/** Address of unchanged lines around one of its changes: of an approval, or an event. */
export const linesPath = (run: string, subject: Readonly<Record<string, string>>): string =>
  `${runPath(run)}/lines?${new URLSearchParams(subject).toString()}`;

/** Address of what it did to one file. */
export const changesPath = (run: string, path: string): string =>
  `${runPath(run)}/changes?path=${encodeURIComponent(path)}`;

/** Whether a form came out of a page of this session. */
export const isOwnForm = (session: PageSession, csrf: string): boolean => isSame(csrf, session.csrf);
