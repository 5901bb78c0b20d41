/** The handlers of routes.json, which has what each route does, its scopes, its input and its answer. */
import type { PrincipalRuns } from "../../runs/service.ts";
import { recordText } from "../../runs/review-events.ts";
import { type RunFilter, type Scope, alreadyAnswered, isApproval, parsePoint } from "../../runs/run.ts";
import type { PersonAnswer, ReviewChoice } from "../../tools/request.ts";
import { type PageSession, operatorMark } from "../contracts/viewer.ts";
import { deleteMemory, saveMemory } from "../page/files.ts";
import type { Reply } from "../page/responses.ts";
import { type ScreenContext, readinessFor } from "../page/screen-context.ts";
import { search } from "../page/search.ts";
import { beginAt } from "../page/servers.ts";
import { choicesOf } from "../page/start-form.ts";
import { exportText } from "../page/updates.ts";
import { limitsDocument } from "../views/limit-words.ts";
import { LINES_OF_PAGE } from "../views/room/files.ts";
import { LIFETIMES } from "../views/room/share.ts";
import { apiEvent, apiRequest, apiRun, apiSchedule, apiSummary, shownNow } from "./documents.ts";
import table from "./routes.json" with { type: "json" };
import { type Notation, readSchema } from "./schema.ts";
import { followRun } from "./stream.ts";

/** A request whose rights and input were checked. `run` and `id` are those of its address. */
export interface Call<Input = object> extends Record<"run" | "id", string> {
  /** By the schema of the route, with names in camel case. */
  input: Input;
  context: ScreenContext;
  runs: PrincipalRuns;
  session: PageSession;
  reply: Reply;
  /** Sends a stream, for as long as the session may look. */
  stream: (send: (stop: AbortSignal) => Promise<void>) => Promise<object | null>;
}

/** `undefined` and false: there is no such thing. Null: it was sent as a stream. `ok: false`: it was refused. */
type Handler = (call: Call<never>) => Promise<object | boolean | undefined | null>;
type Method<
  Group extends keyof PrincipalRuns,
  Name extends keyof PrincipalRuns[Group],
> = PrincipalRuns[Group][Name];
type Order = Parameters<Method<"control", "start">>[0];
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

async function start({ runs, session }: Call, order: Order) {
  const outcome = await runs.control.start({ ...order, ...operatorMark(session), by: "api" });
  return outcome.ok ? { ...outcome.run, run_id: outcome.run.id, how: outcome.how } : outcome;
}

async function schedule({ context }: Call, change: ReturnType<Method<"schedules", "add">>) {
  const outcome = await change;
  return outcome.ok ? apiSchedule(outcome.schedule, context) : outcome;
}

/** Answers a request, if it is still what was shown. `isCheck`: nothing is stored. */
async function decide({ runs, run, id, input: { shown, answer } }: Call<Given>, isCheck: boolean) {
  const request = (await runs.read.view(run))?.requests.find((one) => one.id === id);
  if (request === undefined) return undefined;
  if (shownNow(request) !== shown)
    return failure("changed", "This request is not as it was shown any more. Read it again, then decide.");
  const name = isApproval(request) ? request.tool : "";
  const edit = answer.type === "edit" && {
    type: answer.type,
    editedAction: { name, args: answer.arguments },
  };
  const given = { requestId: id, answer: edit || (answer as PersonAnswer) }; // of another type
  if (isCheck && request.status !== "pending") return { problem: alreadyAnswered(request) };
  if (isCheck) return { problem: await runs.requests.problemOf(run, given) };
  const outcome = await runs.requests.answer(run, given, "api");
  return outcome.ok ? { how: outcome.how, request: apiRequest(outcome.request) } : outcome;
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
async function goOn(call: Call<Partial<Order> & { point?: string }>) {
  const {
    runs,
    run,
    input: { task, point, ...given },
  } = call;
  const before = (await runs.read.view(run))?.run;
  if (before === undefined) return undefined;
  const threadId = point ?? before.threadId;
  if (point !== undefined && parsePoint(point)?.threadId !== before.threadId)
    return failure("point_not_found", "Choose one of the points of this run.");
  const again = task === undefined && before.goal ? { goal: before.goal } : {};
  const choices = { ...choicesOf(before, await runs.agents.readiness()), ...again, ...given };
  return start(call, { ...choices, task: task ?? before.task, threadId });
}

async function listRuns({ runs, context, input }: Call<RunFilter & { limit?: number; before?: string }>) {
  const { limit = 50, before, ...filter } = input;
  const wanted = { limit: limit + 1, ...(before && { before }) };
  const [found, counts] = await Promise.all([runs.read.summaries(filter, wanted), runs.read.counts()]);
  const next = found.length > limit ? found[limit - 1]?.id : undefined;
  return { runs: found.slice(0, limit).map((run) => apiSummary(run, context)), next, counts };
}

async function share({
  runs,
  run,
  session,
  reply,
  context: { sharing },
  input,
}: Call<{ expiresIn: string }>) {
  const [, , milliseconds = 0] = LIFETIMES.find(([known]) => known === input.expiresIn) ?? [];
  if (sharing === undefined) return undefined;
  const made = await runs.access.share(run, milliseconds, await session.madeWith?.());
  return made.ok ? { ...made.share, address: reply.at(await sharing.address(made.share)) } : made;
}

async function proposed({ runs, run, context, input: { whole } }: Call<{ whole?: string }>) {
  const own = (await runs.read.view(run))?.run;
  if (own?.changes !== "propose") return undefined;
  return whole === undefined ? context.changeOf(runs, own) : runs.changes.proposed(run, [whole]);
}

async function settings({ context }: Call) {
  const { limits = {}, refusal, models = [], folders = [], ...rest } = await readinessFor(context);
  return { ...rest, models, folders, problem: refusal?.message, limits: limitsDocument(limits) };
}

async function follow(call: Call) {
  const view = await call.runs.read.view(call.run);
  return view && call.stream((stop) => followRun(call, view, stop));
}

/** The list under its name; undefined if there is none. */
const list = async <Item>(
  name: string,
  items: Promise<readonly Item[] | undefined>,
  show = (item: Item): unknown => item,
) => {
  const found = await items;
  return found && { [name]: found.map(show) };
};

type Plan = Parameters<Method<"schedules", "add">>[0];
type Told = Parameters<Method<"control", "tell">>[1] & { agent?: string };
const HANDLERS: { readonly [Name in keyof typeof table.routes]: Handler } = {
  "GET /runs": listRuns,
  "POST /runs": (call: Call<Order>) => start(call, call.input),
  "GET /runs/:run": async ({ runs, run }) => runs.read.view(run).then((view) => view && apiRun(view)),
  "GET /runs/:run/stream": follow,
  "GET /runs/:run/events": ({
    runs,
    run,
    input: { after = 0, limit = 50 },
  }: Call<{ after?: number; limit?: number }>) =>
    list("events", runs.read.events(run, { after, limit }), apiEvent),
  "GET /runs/:run/steps/:id": ({ runs, run, id }) =>
    runs.read.callTexts(run, Number(id)).then((step) => step && { ...step, arguments: step.args }),
  "GET /runs/:run/transcript": async ({ context, run }) => {
    const markdown = await exportText(context, run, new URLSearchParams({ as: "markdown" }));
    return markdown === undefined ? undefined : { markdown };
  },
  "GET /runs/:run/points": ({ runs, run }) => list("points", runs.read.points(run)),
  "POST /runs/:run/continue": goOn,
  "POST /runs/:run/messages": async (call: Call<Told>) => {
    const { agent, ...told } = call.input;
    return call.runs.control.tell(await meant(call, agent), told);
  },
  "POST /runs/:run/cancel": async (call: Call<{ reason?: string; agent?: string }>) => {
    const { reason = "cancelled over the API", agent } = call.input;
    return call.runs.control.cancel(await meant(call, agent), reason);
  },
  "POST /runs/:run/name": ({ runs, run, input }: Call<{ name: string }>) =>
    runs.control.rename(run, input.name),
  "DELETE /runs/:run": ({ runs, run }) => runs.control.delete(run),
  "POST /runs/:run/links": share,
  "GET /requests": async ({ runs, input: { limit = 50 } }: Call<{ limit?: number }>) => {
    const [pending, total] = await Promise.all([runs.read.pending(limit), runs.read.countPending()]);
    return { requests: pending.map(apiRequest), total };
  },
  "POST /runs/:run/requests/:id": (call: Call<Given>) => decide(call, false),
  "POST /runs/:run/requests/:id/check": (call: Call<Given>) => decide(call, true),
  "GET /runs/:run/changes": proposed,
  "POST /runs/:run/changes": async ({ runs, run, input }: Call<{ choice: ReviewChoice }>) => {
    const outcome = await runs.changes.review(run, input.choice, "api");
    return outcome.ok ? { ...outcome.record, text: recordText(outcome.record) } : outcome;
  },
  "GET /files": listFiles,
  "GET /files/content": readFile,
  "GET /runs/:run/files": listFiles,
  "GET /runs/:run/files/content": readFile,
  "POST /memories": async ({ runs, input }: Call<Parameters<typeof saveMemory>[1]>) =>
    failure(
      "not_saved",
      await saveMemory(await runs.files.mounts(), { ...input, version: input.version ?? "" }),
    ),
  "DELETE /memories": async ({ runs, input }: Call<{ path: string }>) =>
    failure("not_saved", await deleteMemory(await runs.files.mounts(), input.path)),
  "GET /search": async ({ context, reply, input }: Call<{ q: string }>) => {
    const { all, files } = await search(context, input.q.trim().toWellFormed(), false, reply.left());
    return { ...all, runs: all.runs.map((run) => apiSummary(run, context)), notes: files.notes };
  },
  "GET /schedules": ({ runs, context }) =>
    list("schedules", runs.schedules.list(), (one) => apiSchedule(one, context)),
  "POST /schedules": (call: Call<Plan>) =>
    schedule(call, call.runs.schedules.add({ ...call.input, ...operatorMark(call.session) })),
  "POST /schedules/:id": (call: Call<Partial<Plan>>) =>
    schedule(call, call.runs.schedules.edit(call.id, { ...call.input, ...operatorMark(call.session) })),
  "POST /schedules/:id/pause": (call) => schedule(call, call.runs.schedules.pause(call.id)),
  "POST /schedules/:id/resume": (call) => schedule(call, call.runs.schedules.resume(call.id)),
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
  "GET /access": ({ runs }) => list("access", runs.access.list()),
  "DELETE /access/:id": ({ runs, id }) => runs.access.revoke(id),
  "GET /rules": ({ runs }) => list("rules", runs.rules.list()),
  "DELETE /rules/:id": ({ runs, id }) => runs.rules.remove(id),
  "GET /settings": settings,
  "GET /session": async ({ session }) => session,
};

type Facts = { does: string; scopes: readonly string[]; input?: Notation; answer?: Notation };
export const ROUTES = Object.entries<Facts>(table.routes).map(
  ([name, { does, scopes, input = {}, answer = {} }]) => {
    const [method = "", path = ""] = name.split(" ");
    const schemas = { input: readSchema(input), answer: readSchema(answer) };
    const handle = HANDLERS[name as keyof typeof HANDLERS]; // a name of the table
    return { method, path, does, scopes: scopes as readonly Scope[], handle, ...schemas }; // as the test of scopes reads them
  },
);
