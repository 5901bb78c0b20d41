/** What people decide, start, tell, cancel and change on the page. */
import type { Scope } from "../../config/sections.ts";
import { alreadyDecided } from "../../runs/run.ts";
import type { Html } from "../views/html.ts";
import { MEMORIES } from "../views/room/file-tree.ts";
import { type Complaint, isWholeOnPage } from "../views/room/review.ts";
import { type Follow, type Screen, renderNotice } from "../views/room/shell.ts";
import { isAsItStands } from "../views/shown-call.ts";
import { editProblem, pageDecision } from "./decision.ts";
import { deleteMemory, filesScreen, saveMemory } from "./files.ts";
import { shownAt } from "./live.ts";
import type { Reply } from "./responses.ts";
import { type Picture, type ScreenContext, reviewScreen, runScreen } from "./screens.ts";
import { filePath, filesPath, runPath } from "./sessions.ts";
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
  show: (status: number, screen: Screen | undefined, follow?: Follow) => void;
}

interface FormWork {
  /** What a session needs to send it. */
  scope: Scope;
  work: (sent: SentForm) => Promise<void>;
}

/** Finds the handler for a form. `action`: the path after the run's address; `undefined` for forms of no run. */
export const workOf = (path: string, action: string | undefined): FormWork | undefined =>
  action === undefined ? OF_ALL.get(path) : OF_RUN.get(action);

const start: FormWork["work"] = async ({ context: { runs, session }, form, reply }) => {
  const task = textOf(form, "task");
  if (task === "") return reply.html(422, failure("There was no task in the form."));
  const started = await runs.start(session.principal, { task });
  if (!started.ok) return reply.html(422, failure(started.message));
  return reply.redirect(runPath(started.run.id));
};

const save: FormWork["work"] = async ({ context, form, reply, now, show }) => {
  const { runs, session } = context;
  const [path = "", version = ""] = ["path", "version"].map((name) => form.get(name) ?? "");
  const content = (form.get("content") ?? "").replaceAll("\r\n", "\n");
  const problem = await saveMemory(await runs.files(session.principal), { path, content, version });
  const address = filePath(filesPath(), path);
  if (problem === undefined) return reply.redirect(address);
  const complaint = { problem, content };
  const query = new URLSearchParams();
  return show(422, await filesScreen({ context, runId: undefined, address, query, now, complaint }));
};

const remove: FormWork["work"] = async ({ context: { runs, session }, form, reply }) => {
  const path = form.get("path") ?? "";
  const problem = await deleteMemory(await runs.files(session.principal), path);
  if (problem !== undefined) return reply.html(422, failure(problem));
  return reply.redirect(filePath(filesPath(), MEMORIES));
};

const tell: FormWork["work"] = async ({ context: { runs, session }, runId, form, reply }) => {
  const text = textOf(form, "text");
  if (text === "") return reply.redirect(`${runPath(runId)}/work`);
  const told = await runs.tell(session.principal, runId, { text });
  if (!told.ok) return reply.html(422, failure(told.message));
  return reply.redirect(`${runPath(runId)}/work`);
};

const cancel: FormWork["work"] = async ({ context: { runs, session }, runId, reply, show }) => {
  const cancelled = await runs.cancel(session.principal, runId, "cancelled on the page");
  return cancelled.ok ? reply.redirect(runPath(runId)) : show(404, undefined);
};

const goOnAtEnd: FormWork["work"] = async (sent) => {
  const { runs, session } = sent.context;
  const view = await runs.view(session.principal, sent.runId);
  return view === undefined ? sent.show(404, undefined) : goOn(sent, view.run.threadId);
};

const fork: FormWork["work"] = async (sent) => {
  const { runs, session } = sent.context;
  const points = await runs.points(session.principal, sent.runId);
  const point = points?.find(({ id }) => id === sent.form.get("point"));
  return point === undefined
    ? sent.reply.html(422, failure("Choose the moment from which it begins."))
    : goOn(sent, point.id);
};

async function goOn({ context, form, reply }: SentForm, threadId: string): Promise<void> {
  const { runs, session } = context;
  const task = textOf(form, "task");
  if (task === "") return reply.html(422, failure("There was no task in the form."));
  const started = await runs.start(session.principal, { task, threadId });
  if (!started.ok) return reply.html(422, failure(started.message));
  // A session of one run is not to be left with a page that it may not see.
  return reply.redirect(runPath(session.run ?? started.run.id));
}

async function decide({ context, runId, form, reply, now, show }: SentForm): Promise<void> {
  const { runs, session } = context;
  const approvalId = form.get("approval") ?? "";
  const isOfAll = form.get("back") === "all" && session.run === undefined;
  const complain = async (problem: string): Promise<void> => {
    const complaint: Complaint = { approvalId, problem, form };
    const read = async (about?: Complaint): Promise<Picture | undefined> =>
      isOfAll
        ? reviewScreen(context, about)
        : (await runScreen(context, runId, "review", new URLSearchParams(), about))?.picture;
    const [picture, plain] = [await read(complaint), await read()];
    if (picture === undefined || plain === undefined) return show(404, undefined);
    // The page goes on with the review from here, and is not told at once that it has no complaint.
    const address = isOfAll ? "/review" : `${runPath(runId)}/review`;
    show(422, picture(now), { mark: shownAt(plain, now).mark, address });
  };
  const view = await runs.view(session.principal, runId);
  const approval = view?.approvals.find(({ id }) => id === approvalId);
  if (approval === undefined) return complain("There is no such approval in this run.");
  if (approval.status !== "pending") return complain(alreadyDecided(approval));
  const read = pageDecision(approval, form);
  if (!read.ok) return complain(read.problem);
  const isWhole = isWholeOnPage(approval) || hasProof(session, approval, form);
  if (isAsItStands(read.decision, approval) && !isWhole) return complain(NOT_WHOLE);
  const outcome = await runs.decide(session.principal, runId, approvalId, read.decision, "page");
  if (!outcome.ok) return complain(outcome.message);
  if (outcome.repeated) return complain(alreadyDecided(outcome.approval));
  return reply.redirect(isOfAll ? "/review" : runPath(runId));
}

const NOT_WHOLE =
  "This page showed only a part of the call, so nothing was approved. Choose “Show the whole call”, and decide below it.";

const check: FormWork["work"] = async ({ context: { runs, session }, runId, form, reply }) => {
  const problem = await editProblem(runs, session.principal, runId, form);
  reply.json(problem ?? {});
};

const OF_ALL: ReadonlyMap<string, FormWork> = new Map([
  ["/start", { scope: "run", work: start }],
  ["/files/save", { scope: "run", work: save }],
  ["/files/delete", { scope: "run", work: remove }],
]);

const OF_RUN: ReadonlyMap<string, FormWork> = new Map([
  ["/decide", { scope: "approve", work: decide }],
  ["/check", { scope: "approve", work: check }],
  ["/tell", { scope: "run", work: tell }],
  ["/cancel", { scope: "run", work: cancel }],
  ["/continue", { scope: "run", work: goOnAtEnd }],
  ["/fork", { scope: "run", work: fork }],
]);

const textOf = (form: URLSearchParams, name: string): string =>
  (form.get(name) ?? "").replaceAll("\r\n", "\n").trim();

const failure = (message: string): Html =>
  renderNotice("That did not work", `${message} Go back and try again.`);
