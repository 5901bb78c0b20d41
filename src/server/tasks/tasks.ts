/** The Tasks extension: a run is its task, and questions and pages are the task's input requests. */
import { memoized } from "../../core/concurrency.ts";
import type { McpServer, ServerContext } from "@modelcontextprotocol/server";
import { ProtocolError, ProtocolErrorCode, inputResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import { asksForClientModel } from "../../config/schema.ts";
import type { Clock } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { NewestOf } from "../../core/newest-of.ts";
import { type ModelCall, type RunView, type RunRequest, isFinal, waitingIn } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { type Taken, keyOf, questionKey } from "../calls/open-requests.ts";
import { formFor, pageMessage, placeOf, takeAnswer } from "../delivery/answers.ts";
import { samplingReply, storeReply } from "../delivery/client-model.ts";
import { type ClientFacts, clientFacts } from "../calls/client.ts";
import { type ConnectionDeps, type ServerDeps, originOf } from "../contracts/deps.ts";
import { type InputRequests, decidedElsewhere, runResult, taskFields, withNote } from "../calls/results.ts";
import { TASKS_EXTENSION } from "../contracts/extensions.ts";
import type { Revision } from "../contracts/revisions.ts";
import { answerWays } from "../calls/tool.ts";
import { guarded, invalidParams } from "../resources/resource.ts";
import type { PersonRequest } from "../views/request-form.ts";

export interface TasksScope {
  deps: ConnectionDeps;
  revision: Revision;
  questions: TaskQuestions;
  pages: TaskPages;
}

interface TaskRequest {
  runs: PrincipalRuns;
  view: RunView;
  client: ClientFacts;
  context: ServerContext;
}

const Task = z.looseObject({ taskId: z.string().min(1).max(200) });

/**
 * `tasks/get`, `tasks/update` and `tasks/cancel` on one instance. The task of a run is the run
 * itself, so any process finds it, and tools and resources show the same.
 */
export function registerTasks(mcp: McpServer, scope: TasksScope): void {
  const serve = (method: string, answer: (request: TaskRequest) => Promise<object>): void => {
    mcp.server.setRequestHandler(method, { params: Task }, ({ taskId }, context) =>
      guarded(method, scope.deps, async () => {
        const client = clientFacts(mcp, context, scope);
        if (!client.tasks)
          throw new ProtocolError(
            ProtocolErrorCode.MissingRequiredClientCapability,
            "Missing required client capability",
            { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
          );
        const runs = await scope.deps.runs();
        const view = await runs.read.view(taskId);
        if (view === undefined)
          // Answers for a task that does not exist and for one of another principal alike.
          throw invalidParams("Unknown task. Use a taskId that run_deep_agent returned.");
        return { ...(await answer({ runs, view, client, context })) };
      }),
    );
  };
  serve("tasks/get", async (request) => getTask(request, scope));
  serve("tasks/update", async (request) => updateTask(request, scope));
  serve("tasks/cancel", async ({ runs, view }) => {
    await runs.control.cancel(view.run.id, "cancelled by the client");
    return {};
  });
}

async function getTask(request: TaskRequest, scope: TasksScope): Promise<object> {
  const { runs, view, client } = request;
  const { deps, pages } = scope;
  const lends = client.models && asksForClientModel(deps.config);
  const fields = taskFields(view, deps.keptAtLeastMs ?? null, { lends });
  const pending = waitingIn(view);
  // The task of a client that cannot be asked ends with a handle, as its call would have. This remains so once the
  // run has needed a person, because an ended task cannot continue.
  const needsPerson = view.requests.length > 0 || (view.run.status === "input_required" && !client.models);
  if (needsPerson && !client.forms && !client.page) {
    const waits =
      pending.length > 0 ? { statusMessage: decidedElsewhere(view, deps.openCommand(view.run)) } : {};
    return { ...fields, ...waits, status: "completed", result: await finalResult(request, deps) };
  }
  const people = await (client.forms
    ? openQuestions(request, scope)
    : pages.ask(view.run.id, pending, pageLink(request, deps)));
  const calls = client.models && !isFinal(view.run.status) ? await runs.read.modelCalls(view.run.id) : [];
  const inputRequests: InputRequests = { ...people.requests };
  for (const call of calls)
    inputRequests[modelKey(call)] = { method: "sampling/createMessage", params: call.request };
  const statusMessage = people.note === undefined ? fields.statusMessage : withNote(view, people.note);
  const { status } = view.run;
  if (status === "completed" || status === "failed")
    return { ...fields, statusMessage, result: await finalResult(request, deps) };
  // A run stays `working` while its client's model is asked, and the client has to learn of the question.
  const isAsking = status === "input_required" || Object.keys(inputRequests).length > 0;
  if (isFinal(status) || !isAsking) return { ...fields, statusMessage };
  return { ...fields, statusMessage, status: "input_required", inputRequests };
}

interface Asked {
  requests: InputRequests;
  note?: string | undefined;
}

const elicitation = (params: PersonRequest) => ({ method: "elicitation/create" as const, params });

/** Names a model call by its content, so that it is not asked again after its reply. */
const modelKey = ({ id }: Pick<ModelCall, "id">): string => `model-${id}`;

const pageLink =
  ({ view, context }: TaskRequest, { page }: ConnectionDeps) =>
  async (): Promise<string | undefined> =>
    page?.decide(view.run.principal, view.run.id, originOf(context));

async function openQuestions(request: TaskRequest, { deps, questions }: TasksScope): Promise<Asked> {
  const { view, client } = request;
  const { run } = view;
  const pending = waitingIn(view);
  const asking = { client, openCommand: deps.openCommand(run) };
  const requests: Asked["requests"] = {};
  let note: string | undefined;
  for (const waiting of pending) {
    const { key, problem, link } = questions.show(waiting, pageLink(request, deps));
    const place = { runId: run.id, ...placeOf(waiting, pending), ...defined({ problem }) };
    requests[key] = elicitation(await formFor(waiting, place, { ...asking, pageLink: link }));
    if (problem !== undefined) note = `Asked again: ${problem}`;
  }
  return { requests, note };
}

/** Builds the result that the call would have returned had it waited. */
async function finalResult({ view, client, context }: TaskRequest, deps: ConnectionDeps) {
  const ways = await answerWays({ kind: "run", view }, client, { context, deps });
  return { isError: false, ...runResult({ view }, { ...ways, form: client.form }) };
}

/** Takes answers to any of the questions, in any order. Ignores answers to unknown or old keys. */
async function updateTask(request: TaskRequest, { deps, questions, pages }: TasksScope): Promise<object> {
  const { runs, view, context, client } = request;
  const { monotonic, logger } = deps;
  const { inputResponses = {} } = context.mcpReq;
  const runId = view.run.id;
  const session = { runs, runId, logger };
  for (const call of client.models ? await runs.read.modelCalls(runId) : [])
    await storeReply(session, call.id, samplingReply(inputResponses[modelKey(call)]));
  const pending = waitingIn(view);
  for (const key of Object.keys(inputResponses)) {
    const response = inputResponse(inputResponses, key);
    pages.answered(runId, key, response.kind === "elicit" && response.action === "accept");
    const found = questions.find(key, pending);
    if (found === undefined) continue;
    const { waiting, question } = found;
    // An earlier process showed the questions that this one has not shown, long enough ago.
    const elapsed = question.shownAt === undefined ? Infinity : monotonic() - question.shownAt;
    const taken: Taken =
      response.kind === "elicit"
        ? await takeAnswer(session, waiting, response, { elapsed, client, by: "tasks/update" })
        : { kind: "left" };
    // Asks under a new key, because the client regards this one as answered.
    if (taken.kind !== "decided") {
      const isOpen = "the form came back without an answer, so it is still open.";
      questions.askAgain(waiting, "problem" in taken ? taken.problem : isOpen);
    }
  }
  return {};
}

/** The form for an approval or another question, for clients that poll. */
interface Question {
  /** Stays the same until an answer could not be carried out; then there is a new one, never an old one. */
  readonly key: string;
  /** When it was asked under this key. */
  readonly since: number;
  /** When a client first got to see this key, by the monotonic clock; absent: not yet. */
  readonly shownAt?: number;
  /** Why the answer to the previous key could not be carried out. */
  readonly problem?: string;
  /** The address that the question names: the same on every poll, because each one opens the page once. */
  readonly link?: () => Promise<string | undefined>;
}

/**
 * Keys under which tasks ask: the id of the approval or question and when it was asked, so that no key comes
 * twice in a run. One that is older than this process gets a key of this process, because an earlier one may
 * have used up any other.
 */
export class TaskQuestions {
  readonly #clocks: Pick<ServerDeps, "clock" | "monotonic">;
  readonly #started: number;
  /** A dropped question is asked again under a new key. */
  readonly #questions = new NewestOf<Question>(10_000);

  constructor(clocks: Pick<ServerDeps, "clock" | "monotonic">) {
    this.#clocks = clocks;
    this.#started = clocks.clock();
  }

  /** Returns the current question, which counts as shown from now on. `open`: makes the address of a page. */
  show(waiting: RunRequest, open: () => Promise<string | undefined>) {
    const question = this.#current(waiting);
    const { shownAt = this.#clocks.monotonic(), link = memoized(open) } = question;
    const shown = { ...question, shownAt, link };
    this.#questions.keep(keyOf(waiting), shown);
    return shown;
  }

  /** Finds what `key` asks for. Keys of earlier processes are accepted, used ones are not. */
  find(key: string, pending: readonly RunRequest[]): { waiting: RunRequest; question: Question } | undefined {
    const waiting = pending.find(({ id }) => key.startsWith(`${id}@`));
    if (waiting === undefined) return undefined;
    const question = this.#current(waiting);
    const since = Number.parseInt(key.slice(waiting.id.length + 1), 36);
    const isUsedUp = question.problem !== undefined && key !== question.key;
    return isUsedUp || Number.isNaN(since) || since > question.since ? undefined : { waiting, question };
  }

  /** Asks again under a new key, with the reason. */
  askAgain(waiting: RunRequest, problem: string): void {
    const since = Math.max(this.#clocks.clock(), this.#current(waiting).since + 1);
    this.#questions.keep(keyOf(waiting), { key: questionKey(waiting.id, since), since, problem });
  }

  #current(waiting: RunRequest): Question {
    const since = Math.max(waiting.requestedAt, this.#started);
    return this.#questions.get(keyOf(waiting)) ?? { key: questionKey(waiting.id, since), since };
  }
}

interface Shown {
  /** When it was asked under its present key. */
  at: number;
  params: PersonRequest;
  /** Ids of the requests that the page shows. */
  pending: ReadonlySet<string>;
  /** The client has opened the page: nothing more is asked of it for these. */
  isOpened: boolean;
  /** A sentence about it for the status message. */
  note?: string;
}
/**
 * The one question that a task has for clients which open the local page: the same key and address on every poll, until
 * the page was opened or something new waits. A client that did not open it is asked under a new key.
 */
export class TaskPages {
  readonly #clock: Clock;
  /** By run. A dropped one is asked about again, with a new address. */
  readonly #shown = new NewestOf<Shown>(1000);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns no question when nothing waits, or the page is open already or cannot be served. */
  async ask(runId: string, pending: readonly RunRequest[], open: () => Promise<string | undefined>) {
    if (pending.length === 0) return { requests: {} };
    const shown = this.#shown.get(runId);
    if (shown !== undefined && pending.every(({ id }) => shown.pending.has(id))) {
      const { at, params, isOpened, note } = shown;
      return { requests: isOpened ? {} : { [questionKey(runId, at)]: elicitation(params) }, note };
    }
    const url = await open();
    if (url === undefined) return { requests: {} };
    const params = { mode: "url" as const, message: pageMessage(runId, pending), url };
    const at = this.#laterThan(shown);
    const ids = new Set(pending.map(({ id }) => id));
    this.#shown.keep(runId, { at, params, pending: ids, isOpened: false });
    return { requests: { [questionKey(runId, at)]: elicitation(params) } };
  }

  /** Records whether the client has opened the page, which decides nothing. */
  answered(runId: string, key: string, isOpened: boolean): void {
    const shown = this.#shown.get(runId);
    if (shown === undefined || key !== questionKey(runId, shown.at)) return;
    shown.isOpened = isOpened;
    shown.note = isOpened
      ? "The page was opened: the answer is given there."
      : "Asked again: the page was not opened, so it is still open.";
    if (!isOpened) shown.at = this.#laterThan(shown);
  }

  /** No key comes twice in a run. */
  #laterThan(shown: Shown | undefined): number {
    return Math.max(this.#clock(), (shown?.at ?? 0) + 1);
  }
}
