/** Loads the data of each screen. Returns undefined if the run is unknown. */
import type { RunEvent } from "../../runs/events.ts";
import type { PendingRequest, RunRequest, Run, RunFilter, RunSummary, RunView } from "../../runs/run.ts";
import { STATUS_WORDS, isFinal, isQuestion, nameOf, waitingIn } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { renderAnswer } from "../views/room/answer.ts";
import { type ListedRun, renderHome } from "../views/room/home.ts";
import type { Refused } from "../views/room/pieces.ts";
import type { Complaint, Request } from "../views/room/request.ts";
import { renderReview, requestsIn } from "../views/room/review.ts";
import type { Tab } from "../views/room/run-head.ts";
import type { News } from "../views/room/shell.ts";
import type { Sharing } from "../views/room/share.ts";
import { type Standing, WORKING, standingInList, standingOf } from "../views/room/states.ts";
import { keyOf } from "../views/room/timeline.ts";
import { renderWork } from "../views/room/work.ts";
import { type Html, html } from "../views/html.ts";
import { oneLine } from "../../core/text.ts";
import { defined } from "../../core/unknown.ts";
import { changedFiles, changesOfRun } from "./file-changes.ts";
import { proposedScreen } from "./proposed.ts";
import type { Picture, ScreenContext } from "./screen-context.ts";
import { headOf, livePicture, readinessFor, waitingFor } from "./screen-context.ts";
import { choicesOf, fieldsOf } from "./start-form.ts";
import { type Viewer, mayRun, runPath } from "../contracts/viewer.ts";
import { renderAccess } from "../views/room/access.ts";
import { renderRules } from "../views/room/rules.ts";

/**
 * `views`: open runs whose agents and activity are read. `task`: characters of a task in an address. `open`: runs of
 * one status to look through. `ends`: runs whose ends are reported.
 */
const MAX = { listed: 50, pending: 50, views: 20, task: 200, open: 50, ends: 20, steps: 200, activity: 100 };

export async function homeScreen(context: ScreenContext, query: URLSearchParams, refused?: Refused) {
  const { runs, session, settings, folderOf } = context;
  const filter = readFilter(query);
  const before = query.get("before");
  const [counts, { pending, waiting }, found, readiness] = await Promise.all([
    runs.read.counts(),
    loadPending(context),
    runs.read.summaries(filter, { limit: MAX.listed + 1, ...(before === null ? {} : { before }) }),
    mayRun(session) ? readinessFor(context) : {},
  ]);
  const open = await openRuns(context, counts);
  const listed = found.slice(0, MAX.listed);
  const views = await loadViews(runs, [...open.asking, ...listed]);
  const news = await loadNews(context, pending);
  const standing = (run: RunSummary): Standing => {
    const view = views.get(run.id);
    return view === undefined ? standingInList(run) : standingOf(view);
  };
  const both = open.asking.filter((run) => standing(run).states.includes(WORKING));
  const isMore = Object.keys(filter).join() === "status" && filter.status === "working" && before === null;
  const shown = (isMore ? [...both, ...listed] : listed)
    .toSorted((one, other) => other.createdAt - one.createdAt)
    .map((run): ListedRun => {
      const { activity } = views.get(run.id) ?? { activity: undefined };
      return Object.assign(run, { standing: standing(run), activity, folder: folderOf?.(run) });
    });
  const stand = { counts, both: both.length, inLine: open.inLine, waiting, pending };
  const list = { runs: shown, filter, hasOlder: found.length > MAX.listed };
  const form = { settings, readiness, refused, given: query.get("task")?.slice(0, MAX.task) };
  const about = { title: "Runs", place: "runs", waiting, news } as const;
  return livePicture(context, about, (now) => renderHome({ session, ...stand, ...list, ...form, now }));
}

/** The open runs, as far as the numbers above the list follow from them. */
async function openRuns(
  { runs }: ScreenContext,
  counts: Readonly<Record<Run["status"], number>>,
): Promise<{ asking: RunSummary[]; inLine: number }> {
  const of = async (status: Run["status"]): Promise<RunSummary[]> =>
    counts[status] === 0 ? [] : runs.read.summaries({ status }, { limit: MAX.open });
  const [asking, working] = await Promise.all([of("input_required"), of("working")]);
  return { asking, inLine: working.filter(({ place }) => place !== undefined).length };
}

/** The views of the first open ones among `runs`. */
async function loadViews(runs: PrincipalRuns, some: readonly RunSummary[]): Promise<Map<string, RunView>> {
  const open = new Map(some.flatMap((run) => (isFinal(run.status) ? [] : [[run.id, run] as const])));
  const found = await Promise.all([...open.values()].slice(0, MAX.views).map(({ id }) => runs.read.view(id)));
  return new Map(found.flatMap((view) => (view === undefined ? [] : [[view.run.id, view] as const])));
}

function readFilter(query: URLSearchParams): RunFilter {
  const [status, text] = [query.get("status") ?? "", (query.get("q") ?? "").trim().slice(0, 200)];
  return {
    ...defined({ folder: query.get("folder") || undefined }),
    ...(Object.hasOwn(STATUS_WORDS, status) ? { status: status as Run["status"] } : {}),
    ...(text === "" ? {} : { text }),
  };
}

/** The oldest requests that wait in all runs, and how many wait. */
async function loadPending({ runs }: ScreenContext) {
  const pending = await runs.read.pending(MAX.pending);
  const waiting = pending.length < MAX.pending ? pending.length : await runs.read.countPending();
  return { pending, waiting };
}

/** Collects open requests, and the newest finished runs. A session of one run gets the end of `own` alone. */
async function loadNews({ runs, session }: ScreenContext, pending: readonly PendingRequest[], own?: Run) {
  const isOfAll = session.run === undefined;
  const seen = isOfAll ? await runs.read.summaries({}, { limit: MAX.ends }) : own ? [own] : [];
  // Ends of shorter runs are not reported.
  const ends = seen.filter(({ createdAt, endedAt = 0 }) => endedAt - createdAt >= 30_000);
  const told = ends.map((run): News => ({
    key: `end ${run.id}`,
    kind: "ends",
    name: oneLine(nameOf(run), 80),
    text: `Run ${STATUS_WORDS[run.status]}`,
    address: runPath(run.id),
  }));
  return [...pending.map(requestNews), ...told];
}

const requestNews = (asked: PendingRequest): News => ({
  key: `ask ${asked.id}`,
  kind: "asks",
  name: oneLine(asked.task, 80),
  text:
    asked.kind === "review"
      ? "Needs your review"
      : isQuestion(asked)
        ? "Needs your answer"
        : "Needs your decision",
  address: `${runPath(asked.runId)}/review`,
});

/** Open requests of all runs. */
export async function reviewScreen(context: ScreenContext, complaint?: Complaint): Promise<Picture> {
  const { session } = context;
  const { pending, waiting } = await loadPending(context);
  const why = await reasons(context, pending);
  const requests: Request[] = pending.map((asked) => ({ asked, why: why.get(asked.id), task: asked.task }));
  const viewer = { session, openCommand: undefined };
  const about = { title: "Needs you", place: "review", waiting, news: pending.map(requestNews) } as const;
  const rest = waiting - pending.length;
  return livePicture(context, about, (now) => renderReview({ requests, rest, viewer, now, complaint }));
}

/** The last text of each agent before it asked, by the id of the first request after it. */
async function reasons({ runs }: ScreenContext, pending: readonly RunRequest[]) {
  const found = await Promise.all(
    pending.map(async ({ id, runId, agent }) => {
      const wanted = { agent, kinds: ["model_called" as const], limit: 1 };
      const [event] = (await runs.read.recentEvents(runId, wanted)) ?? [];
      const text = event?.kind === "model_called" ? event.data.text : "";
      return [id, text, `${runId} ${event?.seq}`] as const;
    }),
  );
  const first = new Map(found.toReversed().map(([id, , reply]) => [reply, id]));
  return new Map(found.flatMap(([id, text, reply]) => (text && first.get(reply) === id ? [[id, text]] : [])));
}

export interface RunScreen {
  picture: Picture;
  view: RunView;
  tab: Tab;
  address: string;
  /** Number of open requests in the picture. */
  waiting: number;
}

/** Something that a person sent and the server did not take; at most one of them. */
export interface Wrong {
  complaint?: Complaint;
  refused?: Refused;
  /** The dialog with links to the run, as it was after one of its forms. */
  dialog?: Pick<Sharing, "isOpen" | "problem">;
}

export async function runScreen(
  context: ScreenContext,
  runId: string,
  named: Tab | undefined,
  query: URLSearchParams,
  wrong: Wrong = {},
): Promise<RunScreen | undefined> {
  const { runs, session } = context;
  const view = await runs.read.view(runId);
  if (view === undefined) return undefined;
  const tab = wrong.complaint === undefined ? (named ?? usualTab(view)) : "review";
  const body = await BODIES[tab](context, view, query, wrong);
  const own = waitingIn(view).map((asked) => ({ ...asked, task: nameOf(view.run) }));
  const { pending, waiting } =
    session.run === undefined ? await loadPending(context) : { pending: own, waiting: own.length };
  const news = await loadNews(context, pending, view.run);
  const head = await headOf(context, view, tab, wrong.dialog);
  const about = { title: oneLine(nameOf(view.run), 80), place: "runs", waiting, news } as const;
  return {
    view,
    tab,
    address: `${runPath(runId)}/${tab}?${query.toString()}`,
    waiting,
    picture: livePicture(context, about, (now) => html`${head(now)} ${body(now)}`),
  };
}

/** Each returns a function that renders the screen below the head. */
const BODIES = {
  work: async ({ runs, session }, view, query) => workBody(runs, view, session, query),
  review: async (context, view, _query, { complaint }) => {
    const requests = requestsIn(view, await reasons(context, waitingIn(view)));
    const viewer = { session: context.session, openCommand: context.openCommand(view.run) };
    // The choices of a form that was carried out are gone.
    const form = complaint?.isDone ? undefined : complaint?.form;
    const proposed = await proposedScreen(context, view.run, form);
    return (now) => renderReview({ requests, proposed, viewer, now, complaint, view });
  },
  answer: async ({ runs, session }, view, _query, { refused }) => {
    const { run } = view;
    const files = await changedFiles(await changesOfRun(runs, run), run);
    const points = mayRun(session) ? await runs.read.points(run.id) : undefined;
    const readiness = mayRun(session) ? await runs.agents.readiness() : undefined;
    const next = readiness && { readiness, chosen: fieldsOf(choicesOf(run, readiness)) };
    const shown = { view, viewer: session, files, points: (points ?? []).toReversed() };
    const answer = renderAnswer({ ...shown, refused, next });
    return () => answer;
  },
} satisfies Record<
  Tab,
  (
    context: ScreenContext,
    view: RunView,
    query: URLSearchParams,
    wrong: Wrong,
  ) => Promise<(now: number) => Html>
>;

/** Events about the run as a whole; the others are steps of its agents. */
const KEY_EVENTS: readonly RunEvent["kind"][] = [
  ...(["run_started", "run_resumed", "run_parked", "run_completed", "run_failed", "run_cancelled"] as const),
  ...(["subagent_started", "subagent_finished", "approval_requested", "approval_decided"] as const),
  ...(["question_asked", "question_answered", "answer_refused", "model_awaited"] as const),
  ...(["compacted", "goal_judged", "goal_ended", "changes_reviewed", "warning", "message_received"] as const),
];

export async function workBody(
  runs: PrincipalRuns,
  view: RunView,
  viewer: Viewer,
  query: URLSearchParams,
): Promise<(now: number) => Html> {
  const { id } = view.run;
  const selected = query.get("agent") ?? "";
  const agent = view.subagents.find((one) => keyOf(one.agent) === selected)?.agent ?? [];
  const isAll = query.get("events") === "all";
  const isList = query.get("view") === "list";
  const before = Number(query.get("before") ?? Number.NaN);
  const [steps = [], activity = []] = await Promise.all([
    runs.read.recentEvents(id, { agent, limit: MAX.steps }),
    runs.read.recentEvents(id, {
      limit: MAX.activity + 1,
      ...(isAll ? {} : { kinds: KEY_EVENTS }),
      ...(Number.isSafeInteger(before) && before > 0 ? { before } : {}),
    }),
  ]);
  const shown: readonly RunEvent[] = activity.slice(0, MAX.activity);
  const older = activity.length > MAX.activity ? shown.at(-1)?.seq : undefined;
  return (now) => renderWork({ view, viewer, now, selected, steps, activity: shown, isAll, isList, older });
}

/** Chooses the tab that answers the person's question at this moment. */
function usualTab(view: RunView): Tab {
  if (isFinal(view.run.status)) return "answer";
  const { states, waiting } = standingOf(view);
  return waiting > 0 && !states.includes(WORKING) ? "review" : "work";
}

export async function accessScreen(context: ScreenContext): Promise<Picture> {
  const { runs, session, sharing } = context;
  const [all, waiting] = await Promise.all([runs.access.list(), waitingFor(context)]);
  // The operator of the server may also revoke links that no longer work.
  const working = session.isLoggedIn && sharing ? await sharing.working(all) : all;
  const about = { title: "Clients and links", place: "access", waiting } as const;
  return livePicture(context, about, () => renderAccess(session, working));
}

export async function rulesScreen(context: ScreenContext): Promise<Picture> {
  const { runs, session } = context;
  const [rules, waiting] = await Promise.all([runs.rules.list(), waitingFor(context)]);
  const about = { title: "Approval rules", place: "rules", waiting } as const;
  return livePicture(context, about, () => renderRules(session, rules.toReversed()));
}
