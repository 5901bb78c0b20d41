/** The handlers of routes.json, which has what each route does, its scopes, its input and its answer. */
import type { StartRequest } from "../../runs/ports.ts";
import type { TellRequest } from "../../runs/service.ts";
import { type RunFilter, type Scope, alreadyAnswered, isApproval, parsePoint } from "../../runs/run.ts";
import type { ScheduleRequest } from "../../runs/schedule.ts";
import type { PersonAnswer, ReviewChoice } from "../../tools/request.ts";
import { operatorMark } from "../contracts/viewer.ts";
import { deleteMemory, saveMemory } from "../page/files.ts";
import { readinessFor } from "../page/screen-context.ts";
import { search } from "../page/search.ts";
import { beginAt } from "../page/servers.ts";
import { choicesOf } from "../page/start-form.ts";
import { exportText } from "../page/updates.ts";
import { limitsDocument } from "../views/limit-words.ts";
import { LINES_OF_PAGE } from "../views/room/files.ts";
import { LIFETIMES } from "../views/room/share.ts";
import { shownNow } from "./documents.ts";
import table from "./routes.json" with { type: "json" };
import { type Call, type Notation, readSchema } from "./schema.ts";
import { followRun } from "./stream.ts";

/** `undefined` and false: there is no such thing. Null: it was sent as a stream. `ok: false`: it was refused. */
type Handler = (call: Call<never>) => Promise<object | boolean | undefined | null>;
type Given = {
  shown: string;
  answer: Exclude<PersonAnswer, { type: "edit" }> | { type: "edit"; arguments: Record<string, unknown> };
};

const failure = (code: string, message: string | undefined) => (message ? { ok: false, code, message } : {});
/** The files of a run, or those that all runs share. */
const files = ({ runs, run }: Call) => (run === "" ? runs.files.mounts() : runs.files.ofRun(run));
/** The run, or its background agent of this ID; empty if it has none. */
const meant = async ({ runs, run }: Call, agent = run): Promise<string> =>
  agent === run || (await runs.read.children(run)).some(({ id }) => id === agent) ? agent : "";
const startBy = ({ runs, session }: Call, order: StartRequest) =>
  runs.control.start({ ...order, ...operatorMark(session), by: "api" });

/** Answers a request, unless its content has changed since it was shown. `isCheck`: nothing is stored. */
async function decide({ runs, run, id, input: { shown, answer } }: Call<Given>, isCheck: boolean) {
  const request = (await runs.read.view(run))?.requests.find((one) => one.id === id);
  if (request === undefined) return undefined;
  if (shownNow(request) !== shown)
    return failure("changed", "This request is not as it was shown any more. Read it again, then decide.");
  const name = isApproval(request) ? request.tool : "";
  const given: PersonAnswer =
    answer.type === "edit" ? { type: "edit", editedAction: { name, args: answer.arguments } } : answer;
  if (!isCheck) return runs.requests.answer(run, { requestId: id, answer: given }, "api");
  const isOpen = request.status === "pending";
  const problem = isOpen ? runs.requests.problemOf(run, { requestId: id, answer: given }) : undefined;
  return { problem: isOpen ? await problem : alreadyAnswered(request) };
}

async function listFiles(call: Call<{ path?: string }>) {
  const listed = await (await files(call))?.ls(call.input.path ?? "/");
  if (!listed?.files) return listed && failure(listed.code ?? "not_read", listed.error);
  return { entries: listed.files.map((file) => ({ ...file, is_dir: file.path.endsWith("/") })) };
}

async function readFile(call: Call<{ path: string; offset?: number; limit?: number }>) {
  const { path, offset, limit = LINES_OF_PAGE } = call.input;
  const read = await (await files(call))?.read(path, offset, Math.min(limit, LINES_OF_PAGE));
  if (read?.content === undefined) return read && failure(read.code ?? "not_read", read.error);
  const { content, ...rest } = read;
  return typeof content === "string" ? read : { ...rest, base64: Buffer.from(content).toString("base64") };
}

/** Continues with the choices of a run; without a task, with its task and goal again. */
async function goOn(call: Call<Partial<StartRequest> & { point?: string }>) {
  const { point, ...given } = call.input;
  const before = (await call.runs.read.view(call.run))?.run;
  if (before === undefined) return undefined;
  if (point !== undefined && parsePoint(point)?.threadId !== before.threadId)
    return failure("point_not_found", "Choose one of the points of this run.");
  const { task, goal, threadId } = before;
  const again = given.task === undefined && goal !== undefined ? { task, goal } : { task };
  const choices = { ...choicesOf(before, await call.runs.agents.readiness()), ...again, ...given };
  return startBy(call, { ...choices, threadId: point ?? threadId });
}

async function shareRun(call: Call<{ expiresIn: string }>) {
  const { sharing } = call.context;
  const [, , milliseconds = 0] = LIFETIMES.find(([known]) => known === call.input.expiresIn) ?? [];
  if (sharing === undefined) return undefined;
  const made = await call.runs.access.share(call.run, milliseconds, await call.session.madeWith?.());
  return made.ok ? { ...made.share, address: call.reply.at(await sharing.address(made.share)) } : made;
}

type Page = { limit?: number; before?: string; after?: number };
const HANDLERS: { readonly [Name in keyof typeof table.routes]: Handler } = {
  "GET /runs": async ({ runs, input: { limit = 50, before, ...filter } }: Call<RunFilter & Page>) => {
    const wanted = { limit: limit + 1, ...(before && { before }) };
    const [found, counts] = await Promise.all([runs.read.summaries(filter, wanted), runs.read.counts()]);
    return {
      runs: found.slice(0, limit),
      next: found.length > limit ? found[limit - 1]?.id : undefined,
      counts,
    };
  },
  "POST /runs": (call: Call<StartRequest>) => startBy(call, call.input),
  "GET /runs/:run": ({ runs, run }) => runs.read.view(run),
  "GET /runs/:run/stream": async (call) => {
    const view = await call.runs.read.view(call.run);
    return view && call.stream((stop) => followRun(call, view, stop));
  },
  "GET /runs/:run/events": async ({ runs, run, input }: Call<Page>) => {
    const events = await runs.read.events(run, { limit: 50, ...input });
    return events && { events };
  },
  "GET /runs/:run/steps/:id": async ({ runs, run, id }) => {
    const step = await runs.read.callTexts(run, Number(id));
    return step && { ...step, arguments: step.args };
  },
  "GET /runs/:run/transcript": async ({ context, run }) => {
    const markdown = await exportText(context, run, new URLSearchParams({ as: "markdown" }));
    return markdown === undefined ? undefined : { markdown };
  },
  "GET /runs/:run/points": async ({ runs, run }) => {
    const points = await runs.read.points(run);
    return points && { points };
  },
  "POST /runs/:run/continue": goOn,
  "POST /runs/:run/messages": async (call: Call<TellRequest & { agent?: string }>) =>
    call.runs.control.tell(await meant(call, call.input.agent), call.input),
  "POST /runs/:run/cancel": async (call: Call<{ reason?: string; agent?: string }>) => {
    const { reason = "cancelled over the API", agent } = call.input;
    return call.runs.control.cancel(await meant(call, agent), reason);
  },
  "POST /runs/:run/name": ({ runs, run, input }: Call<{ name: string }>) =>
    runs.control.rename(run, input.name),
  "DELETE /runs/:run": ({ runs, run }) => runs.control.delete(run),
  "POST /runs/:run/links": shareRun,
  "GET /requests": async ({ runs, input: { limit = 50 } }: Call<Page>) => {
    const [requests, total] = await Promise.all([runs.read.pending(limit), runs.read.countPending()]);
    return { requests, total };
  },
  "POST /runs/:run/requests/:id": (call: Call<Given>) => decide(call, false),
  "POST /runs/:run/requests/:id/check": (call: Call<Given>) => decide(call, true),
  "GET /runs/:run/changes": async ({ runs, run, context, input: { whole } }: Call<{ whole?: string }>) => {
    const own = (await runs.read.view(run))?.run;
    if (own?.changes !== "propose") return undefined;
    return whole === undefined ? context.changeOf(runs, own) : runs.changes.proposed(run, [whole]);
  },
  "POST /runs/:run/changes": ({ runs, run, input }: Call<{ choice: ReviewChoice }>) =>
    runs.changes.review(run, input.choice, "api"),
  "GET /files": listFiles,
  "GET /files/content": readFile,
  "GET /runs/:run/files": listFiles,
  "GET /runs/:run/files/content": readFile,
  "POST /memories": async ({ runs, input }: Call<Parameters<typeof saveMemory>[1]>) =>
    failure("not_saved", await saveMemory(await runs.files.mounts(), input)),
  "DELETE /memories": async ({ runs, input }: Call<{ path: string }>) =>
    failure("not_saved", await deleteMemory(await runs.files.mounts(), input.path)),
  "GET /search": async ({ context, reply, input }: Call<{ q: string }>) => {
    const { all, files } = await search(context, input.q.trim().toWellFormed(), false, reply.left());
    return { ...all, notes: files.notes };
  },
  "GET /schedules": async ({ runs }) => ({ schedules: await runs.schedules.list() }),
  "POST /schedules": ({ runs, session, input }: Call<ScheduleRequest>) =>
    runs.schedules.add({ ...input, ...operatorMark(session) }),
  "POST /schedules/:id": ({ runs, id, session, input }: Call<Partial<ScheduleRequest>>) =>
    runs.schedules.edit(id, { ...input, ...operatorMark(session) }),
  "POST /schedules/:id/pause": ({ runs, id }) => runs.schedules.pause(id),
  "POST /schedules/:id/resume": ({ runs, id }) => runs.schedules.resume(id),
  "POST /schedules/:id/start": ({ runs, id }) => runs.schedules.runNow(id),
  "DELETE /schedules/:id": ({ runs, id }) => runs.schedules.remove(id),
  "GET /servers": async ({ runs }) => ({ servers: (await runs.agents.otherServers()).states() }),
  "POST /servers/ask": async ({ runs }) => {
    const servers = await runs.agents.otherServers();
    return servers.ask().then(() => ({ servers: servers.states() }));
  },
  "POST /servers/:id/login": async ({ context, id }) => {
    const { address, problem } = await beginAt(context, id);
    return address ? { address: address.href } : failure("no_login", problem);
  },
  "GET /access": async ({ runs }) => ({ access: await runs.access.list() }),
  "DELETE /access/:id": ({ runs, id }) => runs.access.revoke(id),
  "GET /rules": async ({ runs }) => ({ rules: await runs.rules.list() }),
  "DELETE /rules/:id": ({ runs, id }) => runs.rules.remove(id),
  "GET /settings": async ({ context }) => {
    const { limits = {}, refusal, models = [], folders = [], ...rest } = await readinessFor(context);
    return { ...rest, models, folders, problem: refusal?.message, limits: limitsDocument(limits) };
  },
  "GET /session": async ({ session }) => session,
};

type Facts = { does: string; scopes: readonly string[]; input?: Notation; answer?: Notation };
export const ROUTES = Object.entries<Facts>(table.routes).map(([name, { does, scopes, input, answer }]) => {
  const [method = "", path = ""] = name.split(" ");
  return {
    method,
    path,
    pattern: new RegExp(`^${path.replace(":run", "[^/]+").replace(":id", "([^/]+)")}$`),
    does,
    scopes: scopes as readonly Scope[], // a test reads them
    input: readSchema(input ?? {}),
    answer: readSchema(answer ?? {}),
    handle: HANDLERS[name as keyof typeof HANDLERS], // of the table
  };
});
