/** Rights of browsers, and the addresses of all that they see. */
import type { Principal, Scope } from "../../runs/run.ts";
import type { MadeWith } from "../../runs/shares.ts";
import { encodePath } from "./uris.ts";

/** `watch`: look. `decide`: also decide on approvals, start runs and end them; never granted to a model. */
export type PagePurpose = "watch" | "decide";

/** A link of this server, with the rights that it grants. */
export interface PageLink {
  principal: Principal;
  purpose: PagePurpose;
  /** The only run that it shows; absent: all of the principal. */
  run?: string;
  /** The run whose page it opens first, where it shows all. */
  first?: string;
}

export interface PageSession {
  /** No other session has it. */
  id: string;
  principal: Principal;
  /** Its rights, as for a token of an MCP client. */
  scopes: readonly Scope[];
  /** The only run that it shows; absent: all of the principal. */
  run?: string;
  /** True if a person logged in, and can log out. */
  isLoggedIn?: boolean;
  /** The token that a person logged in with. */
  madeWith?: () => Promise<MadeWith | undefined>;
  /** When the shared link ends that the browser followed. Absent: it followed none. */
  sharedUntil?: number;
}

/** The viewer of a run: a browser, or an MCP App in a host, which only looks. */
export type Viewer = PageSession | "app";

export const mayDecide = (viewer: Viewer): viewer is PageSession => may(viewer, "approve");

/** True if the viewer may start runs, message and end them, and change memories. */
export const mayRun = (viewer: Viewer): viewer is PageSession => may(viewer, "run");

/** True if the viewer followed a shared link: it shows the acts of the run, without anything it only read. */
export const isShared = (viewer: Viewer): boolean => viewer !== "app" && viewer.sharedUntil !== undefined;

export const may = (viewer: Viewer, scope: Scope): viewer is PageSession =>
  viewer !== "app" && viewer.scopes.includes(scope);

/** Marks choices made on the page of this machine. A person who logged in with a token is a caller. */
export const operatorMark = ({ isLoggedIn }: PageSession): { isOperators?: true } =>
  isLoggedIn ? {} : { isOperators: true };

/** A viewer of approvals. Some need a terminal to decide. */
export interface ApprovalViewer {
  session: Viewer;
  /** A line to paste there; `undefined`: a terminal does not show the run. */
  openCommand: string | undefined;
}

/** Lifetime of a session, in milliseconds. */
export const LIFETIME_MS = 12 * 60 * 60 * 1000;

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

/** Address of the schedules, or of one of them on their screen. */
export const schedulePath = (id?: string): string =>
  id === undefined ? "/schedules" : `/schedules#${encodeURIComponent(id)}`;

export const isApiAddress = (path: string): boolean => /^\/api(?:\/|$)/.test(path);
export const serversPath = (): string => "/servers";
/** Address of the links to runs and the subscriptions. */
export const accessPath = (): string => "/access";
/** Address of the rules by which calls run without a question. */
export const rulesPath = (): string => "/rules";

/** Returns the files address of a run; without a run, that of the files all runs share. */
export const filesPath = (run?: string): string => (run === undefined ? "/files" : `${runPath(run)}/files`);

/** Address of a file or a folder below the address of files. A folder ends in a slash. */
export function filePath(base: string, path: string, query: Readonly<Record<string, string>> = {}): string {
  const more = new URLSearchParams(query).toString();
  const address = base + encodePath(path.toWellFormed());
  return more === "" ? address : `${address}?${more}`;
}

export const changesPath = (run: string, path: string): string =>
  filePath(filesPath(run), path, { view: "changes" });
