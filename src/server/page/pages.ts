/** Answers the requests of browsers: screens, their updates, and the forms on them. */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, pause } from "../../core/clock.ts";
import { StorageError } from "../../core/errors.ts";
import type { RunEvent } from "../../runs/events.ts";
import { type Principal, isFinal } from "../../runs/run.ts";
import type { RunsByHolder } from "../../runs/service.ts";
import { sharedRuns } from "../auth/shared-reader.ts";
import { TABS, type Tab } from "../views/room/run-head.ts";
import { type Screen, renderContent, renderFrame, renderNotice } from "../views/room/shell.ts";
import { assetAt } from "./assets.ts";
import { fileText, filesScreen } from "./files.ts";
import { type SentForm, workOf } from "./forms.ts";
import { type Follow, type LiveScreen, markOf, sendLive } from "./live.ts";
import { decodeOnce } from "../contracts/uris.ts";
import { Reply, readForm } from "./responses.ts";
import type { ApiEndpoint, PartScreen, Picture, ScreenContext, ScreenFacts } from "./screen-context.ts";
import { missingScreen, waitingFor } from "./screen-context.ts";
import { accessScreen, rulesScreen, type RunScreen, homeScreen, reviewScreen, runScreen } from "./screens.ts";
import type { PageSession } from "../contracts/viewer.ts";
import { HELD_MS } from "../auth/auth.ts";
import {
  accessPath,
  isApiAddress,
  isShared,
  may,
  mayRun,
  rulesPath,
  schedulePath,
  serversPath,
} from "../contracts/viewer.ts";
import { ChangeReader, fileScreen } from "./proposed.ts";
import { schedulesScreen } from "./schedules.ts";
import { searchScreen } from "./search.ts";
import { afterLogin, isCallback, serversScreen } from "./servers.ts";
import { exportText } from "./updates.ts";
import type { SignIn } from "./link-sign-in.ts";
import { stepScreen } from "./steps.ts";
import { secretOf } from "./tab-secrets.ts";
import { linesScreen } from "./unchanged.ts";
import { callScreen } from "./whole-call.ts";
import { parsedUrl } from "../../core/unknown.ts";
import notices from "./notices.json" with { type: "json" };
import type { Html } from "../views/html.ts";

export interface PagesOptions extends ScreenFacts {
  runs: () => Promise<RunsByHolder>;
  clock: Clock;
  signIn: SignIn;
  /** Path below which browsers reach the page. Default: none. */
  base?: string;
  /** Answers requests for the API. Absent: there is none. */
  api?: ApiEndpoint | undefined;
  /** Takes one request of a principal; the seconds to wait when there were too many, else 0. Default: no limit. */
  take?: (principal: Principal) => number;
}

/** Browsers that may follow at one time, and those of one principal. */
const MAX_LIVE = { all: 256, each: 64 };
/** Time between two looks at a screen of several runs. */
const LOOK_MS = 1000;

interface Asked {
  url: URL;
  session: PageSession;
  /** Absent: the address is of no run. */
  runId: string | undefined;
  /** The part behind the address of the run. */
  action: string;
}

export class Pages {
  readonly stop = new AbortController();
  readonly #options: PagesOptions;
  readonly #changes: ChangeReader;
  /** Pages that follow, by principal. */
  readonly #live = new Map<string, number>();

  constructor(options: PagesOptions) {
    this.#options = options;
    this.#changes = new ChangeReader(options.clock);
    // Each open stream listens.
    setMaxListeners(0, this.stop.signal);
  }

  /** Answers a request whose host and origin have been checked. `ofApi`: finds sessions of the API in another way. */
  async serve(request: IncomingMessage, response: ServerResponse, ofApi?: SignIn["find"]): Promise<void> {
    const reply = new Reply(request, response, this.#options.base);
    try {
      await this.#answer(reply, ofApi);
    } catch (error) {
      const reference = randomUUID();
      this.#options.logger.error("page.failed", { reference, error });
      if (response.headersSent) response.end();
      else if (error instanceof StorageError) reply.html(503, fixedNotice("noStorage"));
      else reply.html(500, renderNotice("Something went wrong", `Look for ${reference} in the log.`));
    }
  }

  async #answer(reply: Reply, ofApi?: SignIn["find"]): Promise<void> {
    const { signIn, api, logger } = this.#options;
    const { request } = reply;
    // The address is joined as text, because a path of two slashes would be resolved as another host.
    const address = `http://page${request.url ?? "/"}`;
    const url = parsedUrl(address);
    if (url === undefined) return reply.html(404, signIn.nothing);
    if (isApiAddress(url.pathname) && api !== undefined)
      return api({
        reply,
        url,
        find: (runId) => (ofApi ?? signIn.find.bind(signIn))(request, url, runId),
        context: (session) => this.#context(session),
        take: (session) => this.#options.take?.(whoseShare(session)) ?? 0,
        hold: (session, send) => this.#hold(session, send),
        signal: this.stop.signal,
        logger,
      });
    const asset = request.method === "GET" ? assetAt(url.pathname) : undefined;
    if (asset !== undefined) return reply.asset(asset);
    const isForDocument = secretOf(request) === undefined && /^(?:GET|HEAD)$/.test(request.method ?? "");
    if (isForDocument) return reply.html(200, signIn.shell);
    // Browsers report requests from other origins. Other sites cannot send the secret's header either.
    if ((request.headers["sec-fetch-site"] ?? "same-origin") !== "same-origin")
      return reply.text(403, "text/plain", "Forbidden");
    if (await signIn.answer(reply, url)) return;
    const [, run = "", action = ""] =
      /^\/runs\/([^/]+)(\/steps\/\d{1,15}|\/files(?:\/.*)?|\/[a-z]+)?$/.exec(url.pathname) ?? [];
    const runId = run === "" ? undefined : (decodeOnce(run) ?? "");
    const found = await signIn.find(request, url, runId);
    if (found.proof !== undefined) reply.prove(found.proof);
    if (!found.ok) return reply.html(found.status, found.page, found.headers);
    const wait = this.#options.take?.(whoseShare(found.session)) ?? 0;
    if (wait > 0) {
      return reply.html(429, fixedNotice("tooMany"), { "retry-after": String(wait) });
    }
    const asked: Asked = { url, session: found.session, runId, action };
    if (request.method === "POST") return this.#post(reply, asked);
    if (request.method !== "GET") return reply.html(405, signIn.nothing);
    const live = this.#screenAt(asked);
    if (live === undefined) return this.#answerStill(reply, asked);
    if (request.headers.accept === "text/event-stream") return this.#follow(reply, asked, live);
    const picture = await live.read();
    if (picture === undefined) return this.#show(reply, asked.session, 404, undefined);
    const now = this.#options.clock();
    const screen = picture(now);
    const follow = { mark: markOf(renderContent(screen), now), address: live.address?.() };
    await this.#show(reply, asked.session, 200, screen, follow);
  }

  /** Without a screen, the bar and the way home stay for those who see more than one run. */
  async #show(reply: Reply, session: PageSession, status: number, screen?: Screen, follow?: Follow) {
    if (screen === undefined && session.run !== undefined)
      return reply.html(404, this.#options.signIn.nothing);
    const shown = screen ?? (await missingScreen(await this.#context(session)));
    const { icon, ...rest } = renderContent(shown);
    const answer = { ...rest, ...follow, icon: reply.at(icon), frame: renderFrame(shown).trees };
    await reply.screen(screen === undefined ? 404 : status, answer);
  }

  async #context(session: PageSession): Promise<ScreenContext> {
    const runs = await this.#options.runs();
    return {
      ...this.#options,
      runs: isShared(session) ? sharedRuns(runs, session.principal) : runs.as(session),
      session,
      changeOf: (runs, run) => this.#changes.read(runs, run),
      ...(isShared(session) ? { openCommand: () => undefined, ownAddress: undefined } : {}),
    };
  }

  /** The screen of an address; `undefined`: it has none that follows what happens. */
  #screenAt(asked: Asked): LiveScreen | undefined {
    const { session, url, runId, action } = asked;
    if (runId === undefined) {
      const several: Readonly<Record<string, (context: ScreenContext) => Promise<Picture>>> = {
        "/": (context) => homeScreen(context, url.searchParams),
        "/review": (context) => reviewScreen(context),
        ...(mayRun(session) && {
          [schedulePath()]: (context: ScreenContext) => schedulesScreen(context, url.searchParams),
        }),
        [serversPath()]: (context) => serversScreen(context),
        [accessPath()]: accessScreen,
        [rulesPath()]: rulesScreen,
      };
      const read = several[url.pathname];
      const changed = (signal: AbortSignal): Promise<boolean> =>
        pause(LOOK_MS, signal).then(
          () => true,
          () => false,
        );
      return read && { read: async () => read(await this.#context(session)), changed };
    }
    const tab = TABS.find((name) => `/${name}` === action);
    if (action !== "" && tab === undefined) return undefined;
    return this.#runScreen(session, runId, tab, url.searchParams);
  }

  #runScreen(session: PageSession, runId: string, tab: Tab | undefined, query: URLSearchParams): LiveScreen {
    let seen: RunScreen | undefined;
    const context = (): Promise<ScreenContext> => this.#context(session);
    return {
      read: async () => {
        // The tab that was chosen first stays.
        seen = await runScreen(await context(), runId, tab ?? seen?.tab, query);
        return seen?.picture;
      },
      address: () => seen?.address ?? "",
      texts: async function* (signal) {
        const run = seen?.view.run;
        if (run === undefined || isFinal(run.status) || isShared(session) || query.get("agent")) return;
        yield* (await context()).runs.watch.live(run.id, { after: run.lastSeq, signal });
      },
      changed: async (signal) => {
        if (seen === undefined) return false;
        const { view, waiting } = seen;
        const { id, lastSeq, status } = view.run;
        const seesOthers = session.run === undefined;
        if (isFinal(status) && !seesOthers) return false;
        const { runs } = await context();
        const stop = new AbortController();
        // Every open page is looked at again, so that it ends with its session.
        const recheckMs = isShared(session) ? HELD_MS : 30_000;
        // Its place in line follows from other runs.
        const look = AbortSignal.timeout(view.place === undefined ? recheckMs : LOOK_MS);
        const until = AbortSignal.any([signal, look, stop.signal]);
        const changes = [
          ...(isFinal(status) ? [] : [nextEvent(runs.watch.events(id, { after: lastSeq, signal: until }))]),
          ...(seesOthers ? [otherCount({ runs, session }, waiting, until)] : []),
        ];
        await Promise.race(changes).finally(() => stop.abort());
        return true;
      },
    };
  }

  /** Answers with screens without live updates: files, search results and parts of a run. A reload shows changes. */
  async #answerStill(reply: Reply, asked: Asked): Promise<void> {
    const { session, url, runId, action } = asked;
    const [context, query, now] = [await this.#context(session), url.searchParams, this.#options.clock()];
    if (url.pathname === "/search")
      return this.#show(reply, session, 200, await searchScreen(context, query, now, reply.left()));
    if (isCallback(url.pathname) && mayRun(session)) {
      const [after, plain] = [await afterLogin(context, query), await serversScreen(context)];
      const follow = { mark: markOf(renderContent(plain(now)), now), address: serversPath(), isWhole: true };
      return this.#show(reply, session, 200, after(now), follow);
    }
    if (runId !== undefined && action === "/export")
      return this.#sendText(reply, session, await exportText(context, runId, query));
    if (!/^\/files(?:\/|$)/.test(runId === undefined ? url.pathname : action))
      return this.#show(reply, session, 200, await this.#part(asked, context));
    const request = { context, runId, address: url.pathname, query, now };
    if (query.get("as") !== "text") return this.#show(reply, session, 200, await filesScreen(request));
    return this.#sendText(reply, session, await fileText(request));
  }

  async #sendText(reply: Reply, session: PageSession, text: string | undefined): Promise<void> {
    if (text === undefined) return this.#show(reply, session, 404, undefined);
    reply.text(200, "text/plain", text);
  }

  /** Returns undefined if the part is unknown. */
  async #part({ session, url: { searchParams: query }, runId, action }: Asked, context: ScreenContext) {
    if (runId === undefined) return undefined;
    // Results of calls and unchanged lines are of files that the run may only have read.
    if (isShared(session) && action !== "/call") return undefined;
    if (action.startsWith("/steps/")) return stepScreen(context, runId, Number(action.slice(7)));
    return PARTS.get(action)?.(context, runId, query);
  }

  async #follow(reply: Reply, { url, session, runId }: Asked, live: LiveScreen): Promise<void> {
    const isSignedIn = async (): Promise<boolean> =>
      (await this.#options.signIn.find(reply.request, url, runId)).ok;
    const read = async (): Promise<Picture | undefined> => ((await isSignedIn()) ? live.read() : undefined);
    const { clock } = this.#options;
    const [isOnce, isWhole] = [url.searchParams.has("once"), url.searchParams.has("whole")];
    const mark = url.searchParams.get("mark") ?? "";
    const following = { clock, mark, isWhole, isOnce, signal: this.stop.signal };
    const isSent = await this.#hold(session, () => sendLive(reply, { ...live, read }, following));
    if (!isSent) reply.text(503, "text/plain", "Too many pages are open");
  }

  /** Sends a stream, which counts while it is open. False: there are too many. */
  async #hold(session: PageSession, send: () => Promise<void>): Promise<boolean> {
    const principal = whoseShare(session);
    const open = this.#live.get(principal) ?? 0;
    const all = [...this.#live.values()].reduce((sum, one) => sum + one, 0);
    if (open >= MAX_LIVE.each || all >= MAX_LIVE.all) return false;
    this.#live.set(principal, open + 1);
    try {
      await send();
      return true;
    } finally {
      const left = (this.#live.get(principal) ?? 1) - 1;
      if (left > 0) this.#live.set(principal, left);
      else this.#live.delete(principal);
    }
  }

  async #post(reply: Reply, { url, session, runId, action }: Asked): Promise<void> {
    const { signIn, logger } = this.#options;
    const found = workOf(url.pathname, runId === undefined ? undefined : action);
    if (found === undefined) return reply.html(405, signIn.nothing);
    const form = await readForm(reply.request);
    if (form === undefined) return reply.html(400, fixedNotice("noForm"));
    if (!may(session, found.scope)) {
      logger.warn("page.refused", { path: runId === undefined ? url.pathname : action });
      return reply.html(403, fixedNotice("noRight"));
    }
    const context = await this.#context(session);
    const show: SentForm["show"] = (...shown) => this.#show(reply, session, ...shown);
    const now = this.#options.clock();
    return found.work({ context, runId: runId ?? "", form, reply, now, show });
  }
}

function fixedNotice(name: keyof typeof notices): Html {
  const { title, text } = notices[name];
  return renderNotice(title, text);
}

const PARTS: ReadonlyMap<string, PartScreen> = new Map([
  ["/change", fileScreen],
  ["/lines", linesScreen],
  ["/call", callScreen],
]);

/** Followers of a shared link have their own share of the server, separate from the principal's. */
const whoseShare = ({ principal, sharedUntil, id }: PageSession): Principal =>
  sharedUntil === undefined ? principal : id;

/** Resolves with the next event, or when there is none any more. */
async function nextEvent(events: AsyncIterable<RunEvent>): Promise<void> {
  for await (const _event of events) return;
}

/** Resolves when the number of decisions that wait differs from `waiting`, or `signal` aborts. */
async function otherCount(
  context: Pick<ScreenContext, "runs" | "session">,
  waiting: number,
  signal: AbortSignal,
): Promise<void> {
  do await pause(LOOK_MS, signal).catch(() => undefined);
  while (!signal.aborted && (await waitingFor(context)) === waiting);
}

/** True if an address is one of the page; those of links are the loopback server's own. */
export const isPageAddress = (path: string): boolean =>
  /^\/(?:$|review$|schedules(?:$|\/)|servers(?:$|\/)|access(?:$|\/)|rules(?:$|\/)|search$|start$|log(?:in|out)$|shared$|files(?:\/|$)|(?:runs|assets)\/)/.test(
    path,
  );
