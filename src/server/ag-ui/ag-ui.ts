/** Serves runs over AG-UI: a thread of a program is a thread here, and each of its runs a run or a part of one. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AuthInfo } from "@modelcontextprotocol/server";
import type { RunAgentInput } from "@ag-ui/core";
import { RunAgentInputSchema } from "@ag-ui/core/schemas";
import { z } from "zod";
import { GOAL_NOT_USED } from "../views/goal-report.ts";
import { monotonicClock } from "../../core/clock.ts";
import { DeepAgentError } from "../../core/errors.ts";
import { recordOf, defined } from "../../core/unknown.ts";
import type { Principal, RunView, RunRequest } from "../../runs/run.ts";
import { MAX_TASK, isFinal, waitingIn } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { holderFor, principalOf } from "../auth/auth.ts";
import type { ServerDeps } from "../contracts/deps.ts";
import { withoutNullMembers } from "../contracts/envelope.ts";
import { takeAnswer } from "../delivery/answers.ts";
import { type Sent, Spoken, withAnswer } from "../views/spoken.ts";
import { RunEvents, type SentEvent } from "./events.ts";
import { ProgramRequests } from "./requests.ts";

const MAX_ID = 200;
/** Calls of one reply ask at about the same time. */
const GATHER_MS = 300;
/** Answers one request, which was authenticated and whose body is JSON. */
export type AgUiEndpoint = (
  body: unknown,
  auth: AuthInfo | undefined,
  response: ServerResponse,
) => Promise<void>;

interface Request {
  input: RunAgentInput;
  requests: ProgramRequests;
  runs: PrincipalRuns;
  principal: Principal;
  deps: Pick<ServerDeps, "runs" | "logger" | "openCommand" | "stateKey">;
  signal: AbortSignal;
  seen: Map<string, Seen>;
}

interface Seen {
  after: number;
  sent: Sent | undefined;
}

type Send = (event: SentEvent) => Promise<void>;

/** Open runs whose sent events are remembered; an answer for another run continues with the next event. */
const MAX_SEEN = 1000;

export function agUiEndpoint(deps: Request["deps"]): AgUiEndpoint {
  const seen = new Map<string, Seen>();
  return async (body, auth, response) => {
    const read = RunAgentInputSchema.safeParse(readPart(body));
    if (!read.success) {
      const problems = read.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: "invalid_input", message: problems.join("; ").slice(0, 1000) }));
      return;
    }
    // Checked by its schema.
    const input = read.data as RunAgentInput;
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    // It may have gone while its body was read.
    if (response.destroyed) gone.abort();
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    const send: Send = async (event) => {
      if (gone.signal.aborted) return;
      if (!response.write(`data: ${JSON.stringify(event)}\n\n`))
        await once(response, "drain", { signal: gone.signal }).catch(() => undefined);
    };
    const { threadId, runId } = input;
    await send({ type: "RUN_STARTED", threadId, runId });
    try {
      const principal = principalOf(auth);
      const runs = (await deps.runs()).as(holderFor(principal, auth));
      const requests = new ProgramRequests(input, body, principal, await deps.stateKey());
      const request = { input, requests, runs, principal, deps, signal: gone.signal, seen };
      for (const event of await follow(request, await begin(request, send), send)) await send(event);
    } catch (error) {
      deps.logger.info("ag_ui.failed", { error });
      const known = error instanceof DeepAgentError;
      const message = known ? error.message : "The request failed. The log of the server says why.";
      await send({ type: "RUN_ERROR", message, ...(known ? { code: error.code } : {}) });
    }
    for (const id of [...seen.keys()].slice(0, Math.max(0, seen.size - MAX_SEEN))) seen.delete(id);
    response.end();
  };
}

/** The part of a request that is used: the thread has the messages before the last one. Null is read as absent. */
function readPart(body: unknown): Record<string, unknown> {
  const { threadId, runId, messages, resume, forwardedProps, protocolVersion } = withoutNullMembers(
    recordOf(body),
  );
  const last = Array.isArray(messages)
    ? messages.slice(-1).map((message) => ({ id: runId, ...withoutNullMembers(recordOf(message)) }))
    : messages;
  const used = { threadId, runId, messages: last, resume, forwardedProps };
  return { ...used, protocolVersion: String(protocolVersion), state: {}, tools: [], context: [] };
}

/** The run to follow, and the program's knowledge of it. */
interface Begun extends Seen {
  runId: string;
}

/** Answers the run's open requests, starts a run, or messages the one at work. */
async function begin(request: Request, send: Send): Promise<Begun> {
  const { input, requests, runs, principal, deps, seen } = request;
  if (input.threadId.length > MAX_ID || input.runId.length > MAX_ID)
    throw invalid(`threadId and runId have at most ${MAX_ID} characters.`);
  // An id of a program stands for another thread with each principal.
  const thread = `thr_${createHash("sha256")
    .update(JSON.stringify(["ag-ui", principal, input.threadId]))
    .digest("base64url")
    .slice(0, 24)}`;
  // Looking at a run that is named needs no more than starting it.
  const [newest] = await runs.read.summaries({ threadId: thread }, { limit: 1 });
  const existing = newest && (await runs.read.view(newest.id));
  if (requests.answers !== undefined) {
    const place = existing && seen.get(existing.run.id);
    // Somebody else may have answered, and the run may have ended since.
    if (existing === undefined || (isFinal(existing.run.status) && !place))
      throw new DeepAgentError(
        "not_found",
        "Nothing in this thread waits for an answer. Send a new message.",
      );
    const { after = existing.run.lastSeq, sent } = place ?? {};
    for (const waiting of waitingIn(existing)) {
      const given = requests.contentFor(waiting);
      if (given === undefined) continue;
      const taken = await takeAnswer(
        { runs, runId: waiting.runId, logger: deps.logger },
        waiting,
        { action: "accept", ...given },
        { elapsed: Infinity, client: { urls: false }, by: "ag-ui" },
      );
      if (taken.kind === "again") throw new DeepAgentError("invalid_answer", taken.problem);
    }
    return { runId: existing.run.id, after, sent };
  }
  const task = readTask(input);
  const read = Goal.safeParse(input.forwardedProps ?? {});
  if (!read.success)
    throw new DeepAgentError("invalid_goal", "forwardedProps.goal must be a list of texts, the criteria.");
  const goal = read.data.goal;
  const place = existing === undefined ? { newThreadId: thread } : { threadId: thread };
  const wanted = { task, ...defined({ goal }), ...place, idempotencyKey: `ag-ui ${thread} ${input.runId}` };
  const started = await runs.control.start({ ...wanted, by: "ag-ui" });
  if (!started.ok) throw new DeepAgentError(started.code, started.message);
  const isOpen = existing !== undefined && existing.run.id === started.run.id && started.how === "told";
  if (started.how === "told" && goal !== undefined)
    await send({ type: "CUSTOM", name: "warning", value: { text: GOAL_NOT_USED } });
  const { id: runId } = started.run;
  if (!isOpen) return { runId, after: 0, sent: undefined };
  return { runId, after: existing.run.lastSeq, sent: seen.get(runId)?.sent };
}

/** The newest message of the person; the thread has those before it. */
function readTask({ messages }: RunAgentInput): string {
  const last = messages.at(-1);
  const content = last?.role === "user" ? last.content : undefined;
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : (content ?? []);
  const other = parts.find(({ type }) => type !== "text");
  if (other !== undefined) throw invalid(`Parts of type "${other.type}" are not read. Send text.`);
  const text = parts
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("\n")
    .trim();
  if (text === "") throw invalid("The last message must be one of the user with a text.");
  if (text.length > MAX_TASK) throw invalid(`The message has more than ${MAX_TASK} characters.`);
  return text;
}

const invalid = (problem: string): DeepAgentError => new DeepAgentError("invalid_input", problem);

const Goal = z.looseObject({ goal: z.array(z.string()).optional() });

/** Sends events until the run has ended or waits for a person; returns the last ones. */
async function follow(request: Request, begun: Begun, send: Send): Promise<readonly SentEvent[]> {
  const { input, requests, runs, signal, deps } = request;
  const spoken = new Spoken(begun.sent);
  // Clients declare a version since 1.0; those of 0.0.59, the first with these events, ask for them.
  const takesSubagents =
    Number.parseInt(input.protocolVersion ?? "", 10) >= 1 ||
    recordOf(input.forwardedProps)["subagentEvents"] === true;
  const events = new RunEvents(spoken, takesSubagents);
  const finished = { type: "RUN_FINISHED" as const, threadId: input.threadId, runId: input.runId };
  const patience = new Patience();
  for (let { after } = begun; ;) {
    const view = await runs.read.view(begun.runId);
    if (view === undefined) throw new DeepAgentError("not_found", "The run was deleted.");
    const asked = isFinal(view.run.status) ? [] : waitingIn(view);
    if (asked.length > 0 && patience.isOver(view, asked)) {
      for (const one of events.end()) await send(one);
      request.seen.set(begun.runId, { after, sent: spoken.sent });
      return requests.ask(asked, deps.openCommand(view.run), finished);
    }
    const look = asked.length === 0 ? signal : AbortSignal.any([signal, AbortSignal.timeout(GATHER_MS)]);
    let isAsked = false;
    const from = { after, signal: look, text: spoken.newest };
    for await (const event of runs.watch.live(begun.runId, from)) {
      if (event.kind === "live_text") {
        for (const one of events.live(event)) await send(one);
        continue;
      }
      after = event.seq;
      for (const one of events.of(await withAnswer(event, runs))) await send(one);
      request.seen.set(begun.runId, { after, sent: spoken.sent });
      isAsked = event.kind === "approval_requested" || event.kind === "question_asked";
      if (isAsked) break;
    }
    if (signal.aborted) return [finished];
    const last = await runs.read.view(begun.runId);
    if (last !== undefined && isFinal(last.run.status) && after >= last.run.lastSeq) {
      for (const one of events.end()) await send(one);
      request.seen.delete(begun.runId);
      const { run } = last;
      if (run.failure !== undefined) throw new DeepAgentError(run.failure.reason, run.failure.message);
      const { id: runId, status, stopReason } = run;
      const outcome = { type: status === "cancelled" ? ("cancelled" as const) : ("success" as const) };
      return [{ ...finished, result: { runId, status, ...defined({ stopReason }) }, outcome }];
    }
    if (!isAsked && !look.aborted)
      throw new DeepAgentError("shutting_down", "The server is shutting down. Send the same request again.");
  }
}

/** Decides when to ask a program: soon after a new request, or once nobody works on the run. */
class Patience {
  #known: ReadonlySet<string> | undefined;
  #since: number | undefined;

  isOver({ run }: RunView, asked: readonly RunRequest[]): boolean {
    this.#known ??= new Set(asked.map(({ id }) => id));
    const isNew = asked.some(({ id }) => this.#known?.has(id) === false);
    if (!isNew && run.leasedUntil !== undefined) {
      this.#since = undefined;
      return false;
    }
    this.#since ??= monotonicClock();
    return monotonicClock() - this.#since >= GATHER_MS;
  }
}
