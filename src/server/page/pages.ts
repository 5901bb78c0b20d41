/** Answers the requests of browsers: links, screens, what people decide, start, tell and cancel. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, pause } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { type Principal, type Run, alreadyDecided, isFinal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import type { Html } from "../views/html.ts";
import { renderChanges } from "../views/room/changes.ts";
import { MEMORIES } from "../views/room/files.ts";
import type { Complaint } from "../views/room/review.ts";
import { TABS, type Tab } from "../views/room/run-head.ts";
import { type Screen, renderDocument, renderNotice, renderOpening } from "../views/room/shell.ts";
import { assetAt } from "./assets.ts";
import { pageDecision } from "./decision.ts";
import { type FilesRequest, deleteMemory, filesScreen, saveMemory } from "./files.ts";
import { answerProof } from "./find-page.ts";
import { type LiveScreen, sendLive } from "./live.ts";
import { isAllowed, readForm, redirect, sendAsset, sendHtml, sendText } from "./responses.ts";
import { type ScreenContext, homeScreen, reviewScreen, runScreen } from "./screens.ts";
import {
  LinkTokens,
  type PageLink,
  type PageSession,
  PageSessions,
  isOwnForm,
  mayDecide,
  runPath,
} from "./sessions.ts";
import { readChanges } from "./updates.ts";

export interface PagesOptions {
  runs: () => Promise<PrincipalRuns>;
  clock: Clock;
  /** Signs sessions; at least 32 bytes. */
  key: Uint8Array;
  /** Whose data folder it is: they may ask for a link with its key. Default: nobody. */
  local?: Principal;
  /** How a person opens a page that decides. */
  openCommand: (run: Run) => string | undefined;
  /** What a new run gets by the settings, in a few words each. */
  settings: readonly string[];
  logger: Logger;
}

/** Browsers that may follow at one time. */
const MAX_LIVE = 64;
/** How often a screen of several runs is looked at. */
const LOOK_MS = 1000;

type Answer = Promise<void> | void;

export class Pages {
  /** Host and port under which they are served. */
  host = "";
  readonly stop = new AbortController();
  readonly #tokens: LinkTokens;
  readonly #sessions: PageSessions;
  readonly #options: PagesOptions;
  #live = 0;

  constructor(options: PagesOptions) {
    this.#options = options;
    this.#tokens = new LinkTokens(options.clock);
    this.#sessions = new PageSessions(options.key, options.clock);
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isAllowed(request, this.host)) return sendText(response, 403, "text/plain", "Forbidden");
    // The address is joined as text, because a path of two slashes would be resolved as another host.
    const address = `http://${this.host}${request.url ?? "/"}`;
    if (!URL.canParse(address)) return sendHtml(response, 404, NOTHING);
    const url = new URL(address);
    const asset = request.method === "GET" ? assetAt(url.pathname) : undefined;
    if (asset !== undefined) return sendAsset(request, response, asset);
    if (url.pathname === "/open") return this.#open(request, response, url);
    if (url.pathname === "/link") return this.#link(request, response);
    const [, run = "", action = ""] = RUN_ADDRESS.exec(url.pathname) ?? [];
    const runId = run === "" ? undefined : decoded(run);
    const session = this.#sessions.find(request, runId);
    if (session === undefined) return sendHtml(response, 404, NOTHING);
    if (request.method === "POST")
      return this.#post(request, response, { session, path: url.pathname, runId, action });
    if (request.method !== "GET") return sendHtml(response, 405, NOTHING);
    const live = this.#screenAt(session, url, runId, action);
    if (live === undefined) return this.#other(response, session, url, runId, action);
    if (request.headers.accept === "text/event-stream") return this.#follow(response, live);
    const screen = await live.read();
    return screen === undefined
      ? sendHtml(response, 404, NOTHING)
      : sendHtml(response, 200, renderDocument(screen));
  }

  async #context(session: PageSession): Promise<ScreenContext> {
    const { clock, openCommand, settings, runs } = this.#options;
    return { runs: await runs(), session, now: clock(), openCommand, settings };
  }

  /** The screen of an address; `undefined`: it has none that follows what happens. */
  #screenAt(
    session: PageSession,
    url: URL,
    runId: string | undefined,
    action: string,
  ): LiveScreen | undefined {
    const now = (): Promise<ScreenContext> => this.#context(session);
    if (runId === undefined) {
      const several: Readonly<Record<string, () => Promise<Screen>>> = {
        "/": async () => homeScreen(await now(), url.searchParams),
        "/review": async () => reviewScreen(await now()),
      };
      const read = several[url.pathname];
      const changed = (signal: AbortSignal): Promise<boolean> =>
        pause(LOOK_MS, signal).then(
          () => true,
          () => false,
        );
      return read && { read, changed };
    }
    const tab = action === "" ? undefined : TABS.find((name) => `/${name}` === action);
    if (action !== "" && tab === undefined) return undefined;
    return this.#runScreen(session, runId, tab, url.searchParams);
  }

  #runScreen(session: PageSession, runId: string, tab: Tab | undefined, query: URLSearchParams): LiveScreen {
    let run: Run | undefined;
    return {
      read: async () => {
        const found = await runScreen(await this.#context(session), runId, tab, query);
        run = found?.run;
        return found?.screen;
      },
      changed: async (signal) => {
        if (run === undefined) return false;
        const { principal, id, lastSeq } = run;
        const runs = await this.#options.runs();
        for await (const _event of runs.watch(principal, id, { after: lastSeq, signal })) return true;
        // Whoever looks at a run that is over may still see others wait.
        return !isFinal(run.status);
      },
    };
  }

  async #other(
    response: ServerResponse,
    session: PageSession,
    url: URL,
    runId: string | undefined,
    action: string,
  ): Promise<void> {
    const isFiles = runId === undefined ? url.pathname === "/files" : action === "/files";
    if (isFiles) return this.#files(response, session, runId, url.searchParams);
    if (runId === undefined || action !== "/changes") return sendHtml(response, 404, NOTHING);
    const path = url.searchParams.get("path") ?? "";
    const changes = await readChanges(await this.#options.runs(), session.principal, runId, path);
    if (changes === undefined) return sendHtml(response, 404, NOTHING);
    return sendHtml(response, 200, renderDocument(renderChanges(session, runId, path, changes)));
  }

  /** For a command of the person whose data folder this is, who can read its key. */
  async #link(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { key, clock, local } = this.#options;
    const [, proof = ""] = /^Proof (\S+)$/.exec(request.headers.authorization ?? "") ?? [];
    const answer = answerProof(key, this.host, proof, clock());
    if (request.method !== "POST" || local === undefined || answer === undefined) {
      return sendText(response, 403, "text/plain", "Forbidden");
    }
    const first = (await readForm(request))?.get("first") ?? undefined;
    const link = this.link({
      principal: local,
      purpose: "decide",
      ...(first === undefined ? {} : { first }),
    });
    sendText(response, 200, "application/json", JSON.stringify({ link, proof: answer }));
  }

  /** An address that opens the page once. */
  link(link: PageLink): string {
    return `http://${this.host}/open?token=${this.#tokens.mint(link)}`;
  }

  /** Folders and files stand still: a reload shows what is new. */
  async #files(
    response: ServerResponse,
    session: PageSession,
    runId: string | undefined,
    query: URLSearchParams,
    complaint?: FilesRequest["complaint"],
  ): Promise<void> {
    const base = runId === undefined ? "/files" : `${runPath(runId)}/files`;
    const runs = await this.#options.runs();
    const screen = await filesScreen({ runs, session, runId, base, query, complaint });
    if (screen === undefined) return sendHtml(response, 404, NOTHING);
    sendHtml(response, complaint === undefined ? 200 : 422, renderDocument(screen));
  }

  async #open(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    if (request.method === "GET") {
      const token = url.searchParams.get("token") ?? "";
      if (this.#tokens.inspect(token) === undefined) return sendHtml(response, 403, SPENT);
      return sendHtml(response, 200, renderOpening(token));
    }
    const form = request.method === "POST" ? await readForm(request) : undefined;
    const link = this.#tokens.redeem(form?.get("token") ?? "");
    if (link === undefined) {
      this.#options.logger.warn("page.link_refused");
      return sendHtml(response, 403, SPENT);
    }
    const { run, first = run, purpose } = link;
    this.#options.logger.info("page.opened", { ...(run === undefined ? {} : { runId: run }), purpose });
    return redirect(response, first === undefined ? "/" : runPath(first), this.#sessions.open(link));
  }

  async #follow(response: ServerResponse, live: LiveScreen): Promise<void> {
    if (this.#live >= MAX_LIVE) return sendText(response, 503, "text/plain", "Too many pages are open");
    this.#live += 1;
    try {
      await sendLive(response, live, this.stop.signal);
    } finally {
      this.#live -= 1;
    }
  }

  async #post(request: IncomingMessage, response: ServerResponse, posted: Posted): Promise<void> {
    const { session, path, runId, action } = posted;
    const work = runId === undefined ? this.#ALL[path] : this.#OF_RUN[action];
    if (work === undefined) return sendHtml(response, 405, NOTHING);
    const form = await readForm(request);
    if (form === undefined) return sendHtml(response, 400, UNREADABLE);
    if (!mayDecide(session) || !isOwnForm(session, form.get("csrf") ?? "")) {
      this.#options.logger.warn("page.refused", { path: runId === undefined ? path : action });
      return sendHtml(response, 403, MAY_NOT);
    }
    return work({ ...posted, runId: runId ?? "", form, response, runs: await this.#options.runs() });
  }

  readonly #ALL: Readonly<Record<string, (work: Work) => Answer>> = {
    "/files/save": (work) => this.#save(work),
    "/files/delete": (work) => this.#delete(work),
    "/start": async ({ runs, session, form, response }) => {
      const task = textOf(form, "task");
      if (task === "") return sendHtml(response, 422, failure("There was no task in the form."));
      const started = await runs.start(session.principal, { task });
      if (!started.ok) return sendHtml(response, 422, failure(started.message));
      return redirect(response, runPath(started.run.id));
    },
  };

  async #save({ session, form, response, runs }: Work): Promise<void> {
    const [path = "", version = ""] = ["path", "version"].map((name) => form.get(name) ?? "");
    const content = (form.get("content") ?? "").replaceAll("\r\n", "\n");
    const problem = await saveMemory(await runs.files(session.principal), { path, content, version });
    const query = new URLSearchParams({ path });
    if (problem !== undefined) return this.#files(response, session, undefined, query, { problem, content });
    return redirect(response, `/files?${query.toString()}`);
  }

  async #delete({ session, form, response, runs }: Work): Promise<void> {
    const path = form.get("path") ?? "";
    const problem = await deleteMemory(await runs.files(session.principal), path);
    if (problem !== undefined) return sendHtml(response, 422, failure(problem));
    return redirect(response, `/files?${new URLSearchParams({ path: MEMORIES }).toString()}`);
  }

  readonly #OF_RUN: Readonly<Record<string, (work: Work) => Answer>> = {
    "/decide": (work) => this.#decide(work),
    "/tell": async ({ runs, session, runId, form, response }) => {
      const text = textOf(form, "text");
      if (text === "") return redirect(response, `${runPath(runId)}/work`);
      const told = await runs.tell(session.principal, runId, { text });
      if (!told.ok) return sendHtml(response, 422, failure(told.message));
      return redirect(response, `${runPath(runId)}/work`);
    },
    "/cancel": async ({ runs, session, runId, response }) => {
      const cancelled = await runs.cancel(session.principal, runId, "cancelled on the page");
      if (!cancelled.ok) return sendHtml(response, 404, NOTHING);
      return redirect(response, runPath(runId));
    },
    "/continue": async (work) => {
      const view = await work.runs.view(work.session.principal, work.runId);
      return view === undefined ? sendHtml(work.response, 404, NOTHING) : goOn(work, view.run.threadId);
    },
    "/fork": async (work) => {
      const points = await work.runs.points(work.session.principal, work.runId);
      const point = points?.find(({ id }) => id === work.form.get("point"));
      return point === undefined
        ? sendHtml(work.response, 422, failure("Choose the moment from which it begins."))
        : goOn(work, point.id);
    },
  };

  async #decide({ session, runId, form, response, runs }: Work): Promise<void> {
    const approvalId = form.get("approval") ?? "";
    const isOfAll = form.get("back") === "all" && session.run === undefined;
    const complain = async (problem: string): Promise<void> => {
      const complaint: Complaint = { approvalId, problem, form };
      const context = await this.#context(session);
      const screen = isOfAll
        ? await reviewScreen(context, complaint)
        : (await runScreen(context, runId, "review", new URLSearchParams(), complaint))?.screen;
      return screen === undefined
        ? sendHtml(response, 404, NOTHING)
        : sendHtml(response, 422, renderDocument(screen));
    };
    const view = await runs.view(session.principal, runId);
    const approval = view?.approvals.find(({ id }) => id === approvalId);
    if (approval === undefined) return complain("There is no such approval in this run.");
    if (approval.status !== "pending") return complain(alreadyDecided(approval));
    const read = pageDecision(approval, form);
    if (!read.ok) return complain(read.problem);
    const outcome = await runs.decide(session.principal, runId, approvalId, read.decision, "page");
    if (!outcome.ok) return complain(outcome.message);
    if (outcome.repeated) return complain(alreadyDecided(outcome.approval));
    return redirect(response, isOfAll ? "/review" : runPath(runId));
  }
}

interface Posted {
  session: PageSession;
  path: string;
  runId: string | undefined;
  action: string;
}

/** A form of the session's own page. */
interface Work extends Posted {
  runId: string;
  form: URLSearchParams;
  response: ServerResponse;
  runs: PrincipalRuns;
}

async function goOn({ runs, session, form, response }: Work, threadId: string): Promise<void> {
  const task = textOf(form, "task");
  if (task === "") return sendHtml(response, 422, failure("There was no task in the form."));
  const started = await runs.start(session.principal, { task, threadId });
  if (!started.ok) return sendHtml(response, 422, failure(started.message));
  // Shows only one run, and is not to be left with a page that it may not see.
  const next = session.run === undefined ? started.run.id : session.run;
  return redirect(response, runPath(next));
}

const textOf = (form: URLSearchParams, name: string): string =>
  (form.get(name) ?? "").replaceAll("\r\n", "\n").trim();

const RUN_ADDRESS = /^\/runs\/([^/]+)(\/[a-z]+)?$/;

const ANOTHER =
  "Ask for a new link: `deepagent-mcp open` in a terminal gives one to all runs, and check_deep_agent one to its run.";
const SPENT = renderNotice("This link cannot be used", `It was used before, or is too old. ${ANOTHER}`);
const NOTHING = renderNotice("Nothing to see here", `This browser has not opened that. ${ANOTHER}`);
const UNREADABLE = renderNotice("The form could not be read", "Go back, reload the page and try again.");
const MAY_NOT = renderNotice(
  "This page may not do that",
  "Nothing was changed. Go back to the page, which says where decisions are made.",
);

const failure = (message: string): Html =>
  renderNotice("That did not work", `${message} Go back and try again.`);

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}
