/** The forms of the page: people decide, start, message, cancel and change. */
import { defined } from "../../core/unknown.ts";
import { type Run, type Scope, alreadyAnswered, isApproval } from "../../runs/run.ts";
import type { Html } from "../views/html.ts";
import { ANSWERED_LATE } from "../views/request-words.ts";
import { MEMORIES } from "../views/room/file-tree.ts";
import { keyOf } from "../views/room/timeline.ts";
import type { Refused } from "../views/room/pieces.ts";
import { isWholeOnPage } from "../views/room/approval.ts";
import type { Complaint } from "../views/room/request.ts";
import { TABS, type Tab } from "../views/room/run-head.ts";
import { LIFETIMES } from "../views/room/share.ts";
import { type Screen, renderContent, renderNotice } from "../views/room/shell.ts";
import { isAsItStands } from "../../tools/call-request.ts";
import { sendChange } from "./change-form.ts";
import { deleteMemory, filesScreen, saveMemory } from "./files.ts";
import { type Follow, markOf } from "./live.ts";
import { editProblem, pageAnswer } from "./read-answer.ts";
import { type Reply, textOf, typedIn } from "./responses.ts";
import type { Picture, ScreenContext } from "./screen-context.ts";
import { type Wrong, homeScreen, reviewScreen, runScreen } from "./screens.ts";
import { CHANGES, type WrongSchedule, changeFrom, saveFrom, schedulesScreen } from "./schedules.ts";
import { beginAt, serversScreen } from "./servers.ts";
import {
  accessPath,
  filePath,
  filesPath,
  operatorMark,
  rulesPath,
  runPath,
  schedulePath,
  serversPath,
} from "../contracts/viewer.ts";
import { choicesOf, readChoices } from "./start-form.ts";
import { hasProof } from "./whole-call.ts";

/** A form of the session's own page. */
export interface SentForm {
  context: ScreenContext;
  /** Empty where the form belongs to no run. */
  runId: string;
  form: URLSearchParams;
  reply: Reply;
  now: number;
  /** Answers with a screen; `undefined`: there is none. */
  show: (status: number, screen: Screen | undefined, follow?: Follow) => Promise<void>;
}

interface FormWork {
  /** Scope that a session needs to send it. */
  scope: Scope;
  work: Work;
}

type Work = (sent: SentForm) => Promise<void>;

/** Finds the handler for a form. `action`: the path after the run's address; `undefined` for forms of no run. */
export const workOf = (path: string, action: string | undefined): FormWork | undefined =>
  action === undefined ? OF_ALL.get(path) : OF_RUN.get(action);

const start: Work = async (sent) => {
  const { runs, session } = sent.context;
  const task = textOf(sent.form, "task");
  const read = readChoices(sent.form);
  const wrong = task === "" ? NO_TASK : read.ok ? undefined : read;
  const folder = textOf(sent.form, "folder") || undefined;
  const choices = { ...(read.ok ? read.choices : {}), ...defined({ folder }), ...operatorMark(session) };
  const started = wrong ?? (await runs.control.start({ task, ...choices, by: "page" }));
  if (started.ok) return sent.reply.redirect(runPath(started.run.id));
  const { code, message: problem } = started;
  const refused = { field: "task", text: task, problem, fault: FAULTS[code], chosen: sent.form };
  return showAgain(sent, "/", (again) => homeScreen(sent.context, new URLSearchParams(), again), refused);
};

const NO_TASK = { ok: false, code: "no_task", message: "Write what an agent should do." } as const;

/** The fact of a new run that is the reason why it could not start. */
const FAULTS: Readonly<Record<string, Refused["fault"]>> = {
  model_not_configured: "model",
  model_not_allowed: "model",
  limit_not_allowed: "limit",
  cannot_propose: "changes",
  invalid_goal: "goal",
  workspace_missing: "folder",
  folder_not_allowed: "folder",
};

/**
 * Shows a screen again with the refused input and the reason. The page then follows the plain screen, and its first
 * update does not remove the complaint.
 */
async function showAgain<Complained>(
  { now, show }: SentForm,
  address: string,
  read: (wrong?: Complained) => Promise<Picture | undefined>,
  wrong: Complained,
  status = 422,
): Promise<void> {
  const [picture, plain] = [await read(wrong), await read()];
  if (picture === undefined || plain === undefined) return show(404, undefined);
  return show(status, picture(now), { mark: markOf(renderContent(plain(now)), now), address, isWhole: true });
}

/** Shows a screen of the run in the same way. */
function showRun(sent: SentForm, tab: Tab | undefined, wrong: Wrong, status?: number): Promise<void> {
  const { context, runId } = sent;
  const read = async (again?: Wrong): Promise<Picture | undefined> =>
    (await runScreen(context, runId, tab, new URLSearchParams(), again))?.picture;
  return showAgain(sent, `${runPath(runId)}${tab === undefined ? "" : `/${tab}`}`, read, wrong, status);
}

/** Shows the outcome of a run with a text that was not taken. */
const refuseOn = (sent: SentForm, refused: Refused): Promise<void> => showRun(sent, "answer", { refused });

const save: Work = async ({ context, form, reply, now, show }) => {
  const { runs } = context;
  const [path = "", version = ""] = ["path", "version"].map((name) => form.get(name) ?? "");
  const content = typedIn(form, "content");
  const problem = await saveMemory(await runs.files.mounts(), { path, content, version });
  const address = filePath(filesPath(), path);
  if (problem === undefined) return reply.redirect(address);
  const request = { context, runId: undefined, address, query: new URLSearchParams(), now };
  return show(422, await filesScreen({ ...request, complaint: { problem, content } }));
};

const tell: Work = async (sent) => {
  const { context, runId, form, reply, show } = sent;
  const text = textOf(form, "text");
  const whom = await meantBy(sent);
  if (whom === undefined) return show(404, undefined);
  if (text === "") return reply.redirect(whom.path);
  const told = await context.runs.control.tell(whom.runId, { text });
  if (told.ok) return reply.redirect(whom.path);
  if (whom.runId !== runId)
    return reply.html(422, failure("This agent has ended, so it did not read the message."));
  if (told.code === "not_found") return show(404, undefined);
  const problem =
    "The run has ended, so its agent did not read this. Send it here to continue the conversation.";
  return refuseOn(sent, { field: "more", text, problem });
};

/** The run, or its subagent in the background that a form names; `undefined`: it has no such subagent. */
async function meantBy({ context: { runs }, runId, form }: SentForm) {
  const agent = form.get("agent");
  if (agent === null) return { runId, path: `${runPath(runId)}/work` };
  const child = (await runs.read.children(runId)).find(({ id }) => id === agent);
  if (child === undefined) return undefined;
  const key = keyOf([{ callId: child.id, name: child.name }]);
  return { runId: child.id, path: `${runPath(runId)}/work?agent=${key}` };
}

const cancel: Work = async (sent) => {
  const { context, runId, reply, show } = sent;
  const { runs } = context;
  const whom = await meantBy(sent);
  const cancelled = whom && (await runs.control.cancel(whom.runId, "cancelled on the page"));
  if (!whom || !cancelled?.ok) return show(404, undefined);
  // A run that was cancelled shows its outcome.
  return reply.redirect(whom.runId === runId ? runPath(runId) : whom.path);
};

const rename: Work = async ({ context: { runs }, runId, form, reply, show }) => {
  const isFound = await runs.control.rename(runId, form.get("name") ?? "");
  const tab = readTab(form);
  const address = tab === undefined ? runPath(runId) : `${runPath(runId)}/${tab}`;
  return isFound ? reply.redirect(address) : show(404, undefined);
};

/** The tab of the run on which a form of its head was sent, if it is known. */
const readTab = (form: URLSearchParams): Tab | undefined => TABS.find((tab) => tab === form.get("tab"));

const remove: Work = async ({ context: { runs, session }, runId, reply, show }) => {
  const deleted = await runs.control.delete(runId);
  if (!deleted.ok)
    return deleted.code === "open" ? reply.html(422, failure(deleted.message)) : show(404, undefined);
  return session.run === undefined
    ? reply.redirect("/")
    : reply.html(200, renderNotice("The run is deleted", "You can close this tab."));
};

const share: Work = async (sent) => {
  const { context, runId, form } = sent;
  const { runs, session, sharing, logger } = context;
  const [, , milliseconds] = LIFETIMES.find(([name]) => name === form.get("for")) ?? [];
  if (sharing === undefined) return showLinks(sent, "This server doesn’t create links: shareLinks is off.");
  if (milliseconds === undefined) return showLinks(sent, "Choose when the link expires.");
  const made = await runs.access.share(runId, milliseconds, await session.madeWith?.());
  if (!made.ok) return made.code === "not_found" ? sent.show(404, undefined) : showLinks(sent, made.message);
  const { id: shareId, expiresAt } = made.share;
  logger.info("page.shared", { runId, shareId, expiresAt });
  return showLinks(sent);
};

/** Ends a link or a subscription, from the dialog of a run or the list of all. */
const revoke: Work = async (sent) => {
  const { context, runId, form } = sent;
  const id = form.get("share") ?? "";
  if (await context.runs.access.revoke(id)) context.logger.info("page.revoked", { id });
  return runId === "" ? sent.reply.redirect(accessPath()) : showLinks(sent);
};

const showLinks = (sent: SentForm, problem?: string): Promise<void> =>
  showRun(sent, readTab(sent.form), { dialog: { isOpen: true, problem } }, problem === undefined ? 200 : 422);

/** Continues a conversation with the task and the choices of the form, or with those of the run again. */
const goOnAtEnd =
  (isAgain: boolean): Work =>
  async (sent) => {
    const run = await loadRun(sent);
    if (run === undefined) return sent.show(404, undefined);
    const { threadId, goal } = run;
    const own = { field: "more", run, threadId };
    if (!isAgain) return goOn(sent, { ...own, task: textOf(sent.form, "task"), isChosen: true });
    return goOn(sent, { ...own, task: run.task, ...defined({ goal }) });
  };

const loadRun = async ({ context: { runs }, runId }: SentForm) => (await runs.read.view(runId))?.run;

const fork: Work = async (sent) => {
  const { runs } = sent.context;
  const run = await loadRun(sent);
  if (run === undefined) return sent.show(404, undefined);
  const points = await runs.read.points(sent.runId);
  const [field, task] = ["fork-task", textOf(sent.form, "task")];
  const point = points?.find(({ id }) => id === sent.form.get("point"));
  return point === undefined
    ? refuseOn(sent, { field, text: task, problem: "Choose the step to start from." })
    : goOn(sent, { field, run, threadId: point.id, task });
};

/**
 * `field`: id of the field that the task was written in. `isChosen`: the form has the choices, but for the mode of
 * changes. A goal belongs to its task: another task has none.
 */
async function goOn(
  sent: SentForm,
  {
    field,
    run,
    isChosen,
    task,
    ...more
  }: Pick<Run, "threadId" | "task" | "goal"> & { field: string; run: Run; isChosen?: true },
): Promise<void> {
  const { runs, session } = sent.context;
  const { changes, ...own } = choicesOf(run, await runs.agents.readiness());
  const read = isChosen ? readChoices(sent.form) : ({ ok: true, choices: own } as const);
  const wrong = task === "" ? NO_TASK : read.ok ? undefined : read;
  const choices = { ...more, ...defined({ changes }), ...(read.ok && read.choices) };
  const started = wrong ?? (await runs.control.start({ task, ...choices, by: "page" }));
  if (!started.ok) {
    const chosen = isChosen && { fault: FAULTS[started.code], chosen: sent.form };
    return refuseOn(sent, { field, text: task, problem: started.message, ...chosen });
  }
  // A session of one run is not to be left with a page that it may not see.
  return sent.reply.redirect(runPath(session.run ?? started.run.id));
}

/** Shows a request again with the refused input and the reason. */
function showComplaint(sent: SentForm, problem: Omit<Complaint, "form">): Promise<void> {
  const complaint: Complaint = { ...problem, form: sent.form };
  const status = problem.isDone ? 200 : 422;
  return isOfAll(sent)
    ? showAgain(sent, "/review", (again) => reviewScreen(sent.context, again), complaint, status)
    : showRun(sent, "review", { complaint }, status);
}

/** True if it was sent from the requests of all runs. */
const isOfAll = ({ context: { session }, form }: SentForm): boolean =>
  form.get("back") === "all" && session.run === undefined;

const goNext = (sent: SentForm): void =>
  sent.reply.redirect(isOfAll(sent) ? "/review" : `${runPath(sent.runId)}/review`);

const answer: Work = async (sent) => {
  const { context, runId, form } = sent;
  const { runs, session } = context;
  const requestId = form.get("request") ?? "";
  const complain = (complaint: Omit<Complaint, "form" | "requestId">): Promise<void> =>
    showComplaint(sent, { requestId, ...complaint });
  const request = (await runs.read.view(runId))?.requests.find(({ id }) => id === requestId);
  if (request === undefined) return complain({ problem: "There is no such request in this run." });
  const read = pageAnswer(request, form);
  if (request.status !== "pending" && (isApproval(request) || !read.ok))
    return complain({ problem: alreadyAnswered(request) });
  if (!read.ok) return complain(read);
  if (isApproval(request) && isAsItStands(read.answer, request)) {
    const isWhole = isWholeOnPage(request) || hasProof(session, request, form);
    if (!isWhole)
      return complain({
        problem:
          "Nothing was approved, because this page showed only a part of the call. Open it in full to approve it.",
      });
  }
  const outcome = await runs.requests.answer(runId, { requestId, answer: read.answer }, "page");
  if (!outcome.ok) return complain({ problem: outcome.message });
  if (outcome.how === "told") return complain({ problem: ANSWERED_LATE, isTold: true });
  if (outcome.how === "repeated") return complain({ problem: alreadyAnswered(outcome.request) });
  return goNext(sent);
};

const applyChange: Work = async (sent) => {
  const { context, runId, form, show } = sent;
  const outcome = await sendChange(context, runId, form);
  if (outcome === undefined) return show(404, undefined);
  if (outcome.kind === "stored") return goNext(sent);
  if (outcome.kind === "refused") return showComplaint(sent, outcome);
  return showComplaint(sent, { requestId: runId, problem: outcome.text, isDone: true });
};

const check: Work = async ({ context, runId, form, reply }) =>
  reply.json((await editProblem(context, runId, form)) ?? {});

const saveSchedule: Work = async (sent) => {
  const refused = await saveFrom(sent.context, sent.form);
  const edited = sent.form.get("edit") ?? undefined;
  return refused === undefined ? sent.reply.redirect(schedulePath(edited)) : refuseSchedule(sent, refused);
};

function refuseSchedule(sent: SentForm, refused: WrongSchedule): Promise<void> {
  const read = (wrong?: WrongSchedule) => schedulesScreen(sent.context, new URLSearchParams(), wrong);
  return showAgain(sent, schedulePath(), read, refused);
}

const OF_ALL: ReadonlyMap<string, FormWork> = new Map([
  ["/schedules/add", { scope: "run", work: saveSchedule }],
  ["/schedules/edit", { scope: "run", work: saveSchedule }],
  ...CHANGES.map((change): [string, FormWork] => [
    `/schedules/${change}`,
    {
      scope: "run",
      work: async (sent) => {
        const changed = await changeFrom(sent.context, sent.form, change);
        return typeof changed === "string" ? sent.reply.redirect(changed) : refuseSchedule(sent, changed);
      },
    },
  ]),
  [
    `${serversPath()}/ask`,
    {
      scope: "run",
      work: async ({ context, reply }) => {
        await (await context.runs.agents.otherServers()).ask();
        reply.redirect(serversPath());
      },
    },
  ],
  [
    `${serversPath()}/login`,
    {
      scope: "run",
      work: async (sent) => {
        const notice = await beginAt(sent.context, sent.form.get("server") ?? "");
        const status = notice.problem === undefined ? 200 : 422;
        return showAgain(sent, serversPath(), (again) => serversScreen(sent.context, again), notice, status);
      },
    },
  ],
  [`${accessPath()}/revoke`, { scope: "run", work: revoke }],
  [
    `${rulesPath()}/remove`,
    {
      scope: "approve",
      work: async ({ context: { runs }, form, reply }) => {
        await runs.rules.remove(form.get("rule") ?? "");
        reply.redirect(rulesPath());
      },
    },
  ],
  ["/start", { scope: "run", work: start }],
  ["/files/save", { scope: "run", work: save }],
  [
    "/files/delete",
    {
      scope: "run",
      work: async ({ context: { runs }, form, reply }) => {
        const problem = await deleteMemory(await runs.files.mounts(), form.get("path") ?? "");
        return problem === undefined
          ? reply.redirect(filePath(filesPath(), MEMORIES))
          : reply.html(422, failure(problem));
      },
    },
  ],
]);

const OF_RUN: ReadonlyMap<string, FormWork> = new Map([
  ["/reply", { scope: "approve", work: answer }],
  ["/change", { scope: "approve", work: applyChange }],
  ["/check", { scope: "approve", work: check }],
  ["/tell", { scope: "run", work: tell }],
  ["/cancel", { scope: "run", work: cancel }],
  ["/rename", { scope: "run", work: rename }],
  ["/delete", { scope: "run", work: remove }],
  ["/share", { scope: "run", work: share }],
  ["/unshare", { scope: "run", work: revoke }],
  ["/continue", { scope: "run", work: goOnAtEnd(false) }],
  ["/again", { scope: "run", work: goOnAtEnd(true) }],
  ["/fork", { scope: "run", work: fork }],
]);

const failure = (message: string): Html =>
  renderNotice("That did not work", `${message} Go back and try again.`);
