/** The context in which screens are read, and the frames that they share. */
import type { Logger } from "../../core/logger.ts";
import type { ProposedChange } from "../../runs/proposals.ts";
import { type Run, type RunView, waitingIn } from "../../runs/run.ts";
import type { PrincipalRuns, Readiness } from "../../runs/service.ts";
import { type PageSession, mayRun, runPath } from "../contracts/viewer.ts";
import { type Html, html, icon } from "../views/html.ts";
import { mainOf } from "../views/room/pieces.ts";
import { type HeadLook, renderRunHead } from "../views/room/run-head.ts";
import type { Sharing } from "../views/room/share.ts";
import type { Screen } from "../views/room/shell.ts";
import type { StartSettings } from "../views/room/start-choices.ts";
import type { SignedIn } from "./link-sign-in.ts";
import type { Reply } from "./responses.ts";
import type { SharedLinks } from "./shared-links.ts";

/** Facts about a server and its runs that screens show. */
export interface ScreenFacts {
  /** Returns the command with which a person opens a page that decides. */
  openCommand: (run: Run) => string | undefined;
  /** Settings that count for every new run. */
  settings: StartSettings;
  /** Returns the folder name of a run. Default: it is not shown. */
  folderOf?: ((run: Pick<Run, "environment">) => string | undefined) | undefined;
  /** True if a run works in the workspace of this server. Default: always. */
  isHere?: ((run: Pick<Run, "environment">) => boolean) | undefined;
  /** Makes addresses of links to one run. Default: none are made. */
  sharing?: SharedLinks | undefined;
  /** Returns the origin of this page, if the viewer operates the server. */
  ownAddress?: (() => string) | undefined;
  logger: Logger;
}

export interface ScreenContext extends ScreenFacts {
  runs: PrincipalRuns;
  session: PageSession;
  changeOf: (runs: PrincipalRuns, run: Run) => Promise<ProposedChange | undefined>;
}

/** A request for the API. `find`: the session, now and while a stream is open. `hold` counts a stream; false: too many. */
export interface ApiRequest extends Pick<ScreenFacts, "logger"> {
  reply: Reply;
  url: URL;
  find: (runId: string | undefined) => Promise<SignedIn>;
  context: (session: PageSession) => Promise<ScreenContext>;
  /** Takes one request; the seconds to wait when there were too many, else 0. */
  take: (session: PageSession) => number;
  hold: (session: PageSession, send: () => Promise<void>) => Promise<boolean>;
  signal: AbortSignal;
}
export type ApiEndpoint = (request: ApiRequest) => Promise<void>;

/** Reads one part of a run, which its page links to. `undefined`: there is none. */
export type PartScreen = (
  context: ScreenContext,
  runId: string,
  query: URLSearchParams,
) => Promise<Screen | undefined>;

/** Renders loaded data as a screen, as it looks at a point in time. */
export type Picture = (now: number) => Screen;

/** A screen that is kept up to date. */
export const livePicture =
  (
    { session }: ScreenContext,
    about: Pick<Screen, "title" | "place" | "waiting" | "news">,
    main: (now: number) => Html,
  ): Picture =>
  (now) => ({ ...about, isLive: true, session, main: main(now) });

/** Loads the head of a run's screens. `dialog`: the one with links, in its state after one of its forms. */
export async function headOf(
  context: ScreenContext,
  view: RunView,
  tab: HeadLook["tab"],
  dialog?: Pick<Sharing, "isOpen" | "problem">,
): Promise<(now: number) => Html> {
  const shared = await loadSharing(context, view);
  const look = { tab, folder: context.folderOf?.(view.run), sharing: shared && { ...shared, ...dialog } };
  return (now) => renderRunHead(view, context.session, { ...look, now });
}

/** The links to a run. `undefined`: the session may not share it, or the server makes no links. */
async function loadSharing(
  { runs, session, sharing }: ScreenContext,
  { run: { id: runId, principal } }: RunView,
): Promise<Sharing | undefined> {
  if (sharing === undefined || !mayRun(session)) return undefined;
  const all = await runs.access.list();
  const own = all.filter((one) => one.kind === "link" && one.runId === runId);
  const links = await Promise.all(
    (await sharing.working(own)).map(async ({ id, expiresAt, opened = 0 }) => {
      const address = await sharing.address({ id, principal, runId, expiresAt });
      return { id, expiresAt, opened, address };
    }),
  );
  return { links, isLocal: sharing.isLocal };
}

/** Reads the choices for a new run, as far as the session has them. */
export async function readinessFor({ runs, session }: ScreenContext): Promise<Readiness> {
  const { changes, ...readiness } = await runs.agents.readiness();
  return changes === undefined || (changes === "propose" && session.isLoggedIn)
    ? readiness
    : { ...readiness, changes };
}

/** Number of open requests that a session can see; `view`: of the run that it shows. */
export async function waitingFor(
  { runs, session }: Pick<ScreenContext, "runs" | "session">,
  view?: RunView,
): Promise<number> {
  if (session.run === undefined) return runs.read.countPending();
  return view === undefined ? 0 : waitingIn(view).length;
}

/** A screen that stands still. */
export async function partScreen(
  { runs, session }: Pick<ScreenContext, "runs" | "session">,
  runId: string,
  { title, heading, body }: { title: string; heading: string; body: Html },
): Promise<Screen> {
  const main = html`<p class="crumbs top-space">
      <a href="${runPath(runId)}/work">Back to the run</a>${icon("chev")}<code>${runId}</code>
    </p>
    <h1 class="anywhere">${heading}</h1>
    ${body}`;
  const waiting = await waitingFor({ runs, session });
  return { title, place: "runs", waiting, isLive: false, session, main: mainOf(session, "", main) };
}

/** Answers for a missing screen, and for one that the session may not see, alike. */
export async function missingScreen({ runs, session }: ScreenContext): Promise<Screen> {
  const main = html`<div class="panel empty">
    <h1>Page not found</h1>
    <p>This page doesn’t exist, was deleted, or is not yours to see.</p>
    <p><a class="link" href="/">Show all runs</a></p>
  </div>`;
  const waiting = await waitingFor({ runs, session });
  return {
    title: "Page not found",
    place: "runs",
    waiting,
    isLive: false,
    session,
    main: mainOf(session, "home", main),
  };
}
