/** Reads what a screen shows. `undefined`: there is no such run. */
import { type RunEvent, type RunEventKind, activityOf } from "../../runs/events.ts";
import {
  type Approval,
  type Run,
  type RunFilter,
  type RunHead,
  type RunView,
  isFinal,
} from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { renderAnswer } from "../views/room/answer.ts";
import { type ListedRun, renderHome } from "../views/room/home.ts";
import { type Complaint, type Request, renderReview, requestsOf } from "../views/room/review.ts";
import { type Tab, renderRunHead, tabOf } from "../views/room/run-head.ts";
import type { Screen } from "../views/room/shell.ts";
import { keyOf } from "../views/room/timeline.ts";
import { renderWork } from "../views/room/work.ts";
import { html } from "../views/html.ts";
import { oneLine } from "../../core/text.ts";
import { pendingApprovals } from "../views/run-report.ts";
import { type PageSession, type Viewer, mayDecide } from "./sessions.ts";

export interface ScreenContext {
  runs: PrincipalRuns;
  session: PageSession;
  now: number;
  /** How a person opens a page that decides. */
  openCommand: (run: Run) => string | undefined;
  /** What a new run gets by the settings, in a few words each. */
  settings: readonly string[];
}

const LISTED = 50;
const MAX_PENDING = 50;
/** Of so many open runs in a list it is told what they do now. */
const MAX_ACTIVITIES = 20;
/** Of so many of the newest events one is worth a line. */
const LOOKED_AT = 10;

export async function homeScreen(context: ScreenContext, query: URLSearchParams): Promise<Screen> {
  const { runs, session, now, settings } = context;
  const { principal } = session;
  const filter = filterOf(query);
  const before = query.get("before");
  const [counts, pending, found] = await Promise.all([
    runs.counts(principal),
    runs.pending(principal, MAX_PENDING),
    runs.summaries(principal, filter, { limit: LISTED + 1, ...(before === null ? {} : { before }) }),
  ]);
  const open = found.filter(({ status }) => !isFinal(status)).slice(0, MAX_ACTIVITIES);
  const activities = new Map(
    await Promise.all(open.map(async (run) => [run.id, await activityNow(runs, run)] as const)),
  );
  const listed: ListedRun[] = found
    .slice(0, LISTED)
    .map((run) => Object.assign(run, { activity: activities.get(run.id) }));
  const hasOlder = found.length > LISTED;
  return {
    title: "Runs",
    place: "runs",
    waiting: pending.length,
    isLive: true,
    hasNavigation: true,
    main: renderHome({ session, counts, pending, runs: listed, filter, hasOlder, now, settings }),
  };
}

/** Read from the end of the journal, so that it takes no longer in a long run. */
async function activityNow(
  runs: PrincipalRuns,
  { id, principal, status, leasedUntil }: RunHead,
): Promise<string> {
  if (status === "working" && leasedUntil === undefined) return "waits for its turn";
  const newest = (await runs.recentEvents(principal, id, { limit: LOOKED_AT })) ?? [];
  return newest.map(activityOf).find((line) => line !== undefined) ?? "";
}

const STATUSES: readonly string[] = ["working", "input_required", "completed", "failed", "cancelled"];

function filterOf(query: URLSearchParams): RunFilter {
  const [status, text] = [query.get("status") ?? "", (query.get("q") ?? "").trim().slice(0, 200)];
  return {
    ...(isStatus(status) ? { status } : {}),
    ...(text === "" ? {} : { text }),
  };
}

const isStatus = (text: string): text is NonNullable<RunFilter["status"]> => STATUSES.includes(text);

/** What waits in all runs. */
export async function reviewScreen(
  { runs, session, now }: ScreenContext,
  complaint?: Complaint,
): Promise<Screen> {
  const pending = await runs.pending(session.principal, MAX_PENDING);
  const why = await reasons(runs, session.principal, pending);
  const requests: Request[] = pending.map((approval) => ({
    approval,
    why: why.get(approval.id),
    task: approval.task,
  }));
  const viewer = { session, openCommand: undefined };
  return {
    title: "Needs you",
    place: "review",
    waiting: pending.length,
    isLive: true,
    hasNavigation: true,
    main: renderReview({ requests, viewer, now, complaint }),
  };
}

/** What the agents said last before they asked, by approval. */
async function reasons(
  runs: PrincipalRuns,
  principal: string,
  pending: readonly Approval[],
): Promise<Map<string, string>> {
  const found = await Promise.all(
    pending.map(async ({ id, runId, agent }) => {
      const wanted = { agent, kinds: ["model_called" as const], limit: 1 };
      const [event] = (await runs.recentEvents(principal, runId, wanted)) ?? [];
      return [id, event?.kind === "model_called" ? event.data.text : ""] as const;
    }),
  );
  return new Map(found.filter(([, text]) => text !== ""));
}

export interface RunScreen {
  screen: Screen;
  run: Run;
}

export async function runScreen(
  context: ScreenContext,
  runId: string,
  named: Tab | undefined,
  query: URLSearchParams,
  complaint?: Complaint,
): Promise<RunScreen | undefined> {
  const { runs, session, now } = context;
  const view = await runs.view(session.principal, runId);
  if (view === undefined) return undefined;
  const tab = complaint === undefined ? (named ?? tabOf(view)) : "review";
  const body = await BODIES[tab](context, view, query, complaint);
  return {
    run: view.run,
    screen: {
      title: oneLine(view.run.task, 80),
      place: "runs",
      waiting: await waitingFor(context, view),
      isLive: true,
      hasNavigation: session.run === undefined,
      main: html`${renderRunHead(view, session, tab, now)} ${body}`,
    },
  };
}

/** How many decisions a session can see that wait; `view`: of the run that it shows. */
export async function waitingFor(
  { runs, session }: Pick<ScreenContext, "runs" | "session">,
  view?: RunView,
): Promise<number> {
  if (session.run === undefined) return runs.countPending(session.principal);
  return view === undefined ? 0 : pendingApprovals(view).length;
}

type Body = (
  context: ScreenContext,
  view: RunView,
  query: URLSearchParams,
  complaint?: Complaint,
) => Promise<ReturnType<typeof renderReview>>;

const BODIES: Readonly<Record<Tab, Body>> = {
  work: async ({ runs, session, now }, view, query) => workBody(runs, view, session, query, now),
  review: async ({ runs, session, now, openCommand }, view, _query, complaint) => {
    const why = await reasons(runs, session.principal, pendingApprovals(view));
    const viewer = { session, openCommand: openCommand(view.run) };
    return renderReview({ requests: requestsOf(view, why), viewer, now, complaint, view });
  },
  answer: async ({ runs, session }, view) => {
    const { principal, id } = view.run;
    const changed = await runs.recentEvents(principal, id, { kinds: ["file_changed"], limit: MAX_CHANGES });
    const points = mayDecide(session) ? await runs.points(principal, id) : undefined;
    return renderAnswer({
      view,
      viewer: session,
      changes: (changed ?? []).filter((event) => event.kind === "file_changed"),
      points: (points ?? []).toReversed(),
    });
  },
};

const MAX_CHANGES = 300;
const MAX_STEPS = 200;
const MAX_ACTIVITY = 100;

/** What a person wants to know of a run as a whole; the rest are steps of its agents. */
const KEY_EVENTS: readonly RunEventKind[] = [
  ...(["run_started", "run_resumed", "run_parked", "run_completed", "run_failed", "run_cancelled"] as const),
  ...(["subagent_started", "subagent_finished", "approval_requested", "approval_decided"] as const),
  ...([
    "answer_refused",
    "model_awaited",
    "model_retry",
    "compacted",
    "warning",
    "message_received",
  ] as const),
];

export async function workBody(
  runs: PrincipalRuns,
  view: RunView,
  viewer: Viewer,
  query: URLSearchParams,
  now: number,
): Promise<ReturnType<typeof renderWork>> {
  const { principal, id } = view.run;
  const selected = query.get("agent") ?? "";
  const agent = view.subagents.find((one) => keyOf(one.agent) === selected)?.agent ?? [];
  const isAll = query.get("events") === "all";
  const before = Number(query.get("before") ?? Number.NaN);
  const [steps = [], activity = []] = await Promise.all([
    runs.recentEvents(principal, id, { agent, limit: MAX_STEPS }),
    runs.recentEvents(principal, id, {
      limit: MAX_ACTIVITY + 1,
      ...(isAll ? {} : { kinds: KEY_EVENTS }),
      ...(Number.isSafeInteger(before) && before > 0 ? { before } : {}),
    }),
  ]);
  const shown: readonly RunEvent[] = activity.slice(0, MAX_ACTIVITY);
  const older = activity.length > MAX_ACTIVITY ? shown.at(-1)?.seq : undefined;
  return renderWork({ view, viewer, now, selected, steps, activity: shown, isAll, older });
}
