import { defined } from "../core/unknown.ts";
import { shownName, wellFormed } from "../core/text.ts";
import { type StartChoices, choiceProblem, storableGoal, supervised } from "./choices.ts";
import type { RunContext } from "./context.ts";
import type { Created, StartRequest } from "./ports.ts";
import type { Checkpoints } from "./thread-ports.ts";
import { type Principal, type Run, noRun, parsePoint } from "./run.ts";
import type { Implements } from "./scopes.ts";
import type { Readiness, RunPoint, StartOutcome, TellRequest } from "./service.ts";

const pointId = (threadId: string, number: number): string => `${threadId}@${number}`;

/** Oldest first. */
export async function pointsOfThread(principal: Principal, threadId: string, context: RunContext) {
  const { runs, checkpoints } = context;
  const points: RunPoint[] = [];
  let runId: string | undefined;
  const stored = await readPoints(threadId, await checkpoints?.(principal));
  for (const { number, time, messageId, summary } of stored) {
    // A message to a run at work has an id as well, and began no run.
    if (messageId !== undefined && (await runs.read.run(principal, messageId))) runId = messageId;
    points.push({ id: pointId(threadId, number), time, summary, ...defined({ runId }) });
  }
  return points;
}

/** Makes a thread that begins at `point` of another. It is noted first, so that a crash leaves no lost copy. */
async function forkThread(
  principal: Principal,
  point: { threadId: string; number: number },
  { runs, newId, clock, ...context }: RunContext,
): Promise<{ ok: true; threadId: string } | Refused> {
  const name = pointId(point.threadId, point.number);
  const checkpoints = await context.checkpoints?.(principal);
  const found = (await readPoints(point.threadId, checkpoints)).find(({ number }) => number === point.number);
  if (found === undefined || checkpoints === undefined) return noPoint(name);
  const threadId = newId("thr");
  await runs.beginCopy(principal, threadId, clock());
  if (!(await checkpoints.copyThread(point.threadId, threadId, found.checkpointId))) return noPoint(name);
  await checkpoints.sync();
  return { ok: true, threadId };
}

async function readPoints(threadId: string, checkpoints: Checkpoints | undefined) {
  if (checkpoints === undefined) return [];
  const { pointsOf } = await import("../agent/agent.ts");
  return pointsOf(await checkpoints.steps(threadId));
}

type Refused = Extract<StartOutcome, { ok: false }>;

const noPoint = (name: string): Refused => ({
  ok: false,
  code: "point_not_found",
  message: `There is no point ${shownName(name)} any more. The resource deepagent://runs/{run_id}/points of a run of the thread lists those to choose from.`,
});

const keyConflict = (runId: string): string =>
  `This idempotency key was used before, for run ${runId} with another task, goal or thread. Use a new key for a new task.`;

/** Stores a message for an open run; its agent reads it before it next asks its model. */
export const tell: Implements<"control", "tell"> = async (context, principal, runId, request) => {
  const { runs, newId, clock } = context;
  const { text, idempotencyKey, call }: TellRequest & { call?: StartRequest } = request;
  const sent = await runs.send(principal, runId, {
    id: newId("msg"),
    // In the form in which they are read back, so that a repeated message is the same.
    text: wellFormed(text),
    idempotencyKey: idempotencyKey === undefined ? undefined : wellFormed(idempotencyKey),
    now: clock(),
    ...defined({ call }),
  });
  switch (sent.kind) {
    case "sent":
    case "repeated":
      return { ok: true, run: sent.run, repeated: sent.kind === "repeated" };
    case "not_found":
      return noRun(runId);
    case "conflict":
      return { ok: false, code: "idempotency_conflict", message: keyConflict(sent.runId) };
    case "ended": {
      const { status, threadId, parent } = sent.run;
      const next =
        parent === undefined
          ? `To continue, start a new run in its thread ${threadId}.`
          : `It was a background task of run ${parent.runId}.`;
      return { ok: false, code: "ended", message: `Run ${runId} has already ended (${status}). ${next}` };
    }
  }
};

export const SHUTTING_DOWN: StartOutcome = {
  ok: false,
  code: "shutting_down",
  message: "The server is shutting down. Start the run again in a moment.",
};

/** Stores a new run, or a message to the run at work in the thread. A repeated request finds its run. */
export const start: Implements<"control", "start"> = async (context, principal, given) => {
  // In the form in which it is read back, so that a repeated request is equal.
  const { task, idempotencyKey, goal, ...rest } = supervised(given);
  const key = idempotencyKey === undefined ? {} : { idempotencyKey: wellFormed(idempotencyKey) };
  const criteria = goal && { goal: storableGoal(goal) };
  const request = { ...rest, ...key, ...criteria, task: wellFormed(task) };
  for (;;) {
    const obstacle = await context.runs.read.obstacle(principal, request, context);
    const met = obstacle ?? (await create(principal, request, context));
    if ("ok" in met) return met;
    // From now on the answer to this call counts, and not the one to a call before it.
    if (met.kind === "joined") await context.runs.awaitedBy(principal, met.run.id, request);
    if (met.kind !== "thread_busy") return toStartOutcome(met, request);
    const told = await tellInstead(principal, met.run, request, context);
    if (told !== undefined) return told;
    // It ended in between: the thread is free.
  }
};

async function create(
  principal: Principal,
  request: StartRequest,
  context: RunContext,
): Promise<Created | Refused> {
  const { runs, environment, openRuns, newId, clock } = context;
  const offered = context.choices();
  const refusal = (await context.preflight(principal)) ?? chosenProblem(request, offered);
  if (refusal !== undefined) return { ok: false, code: refusal.code, message: refusal.message };
  const point = request.threadId === undefined ? undefined : parsePoint(request.threadId);
  const thread =
    point === undefined
      ? { ok: true as const, threadId: request.newThreadId ?? newId("thr") }
      : await forkThread(principal, point, context);
  if (!thread.ok) return thread;
  const fresh = { environment, openRuns, runId: newId("run"), newThreadId: thread.threadId };
  return runs.create(principal, request, { ...fresh, changes: offered.changes, now: clock() });
}

function chosenProblem(request: StartRequest, offered: StartChoices): Readiness["refusal"] {
  const { model, limits, goal, changes = offered.changes ?? "direct" } = request;
  const isPlain = model === undefined && limits === undefined && goal === undefined && changes === "direct";
  const problem = isPlain ? undefined : choiceProblem(request, offered);
  return problem && { code: problem.code, message: `No run was started. ${problem.message}` };
}

/** Returns undefined if the run at work in the thread has ended. */
async function tellInstead(
  principal: Principal,
  run: Run,
  request: StartRequest,
  context: RunContext,
): Promise<StartOutcome | undefined> {
  const { task: text, idempotencyKey } = request;
  const message = { text, ...defined({ idempotencyKey }), call: request };
  const told = await tell(context, principal, run.id, message);
  if (told.ok) return { ok: true, run: told.run, how: told.repeated ? "existing" : "told" };
  return told.code === "idempotency_conflict" ? { ...told, code: told.code } : undefined;
}

function toStartOutcome(
  created: Exclude<Created, { kind: "thread_busy" }>,
  request: StartRequest,
): StartOutcome {
  const named = shownName(request.threadId ?? "");
  switch (created.kind) {
    case "created":
      return { ok: true, run: created.run, how: "started" };
    case "existing":
    case "joined":
      return { ok: true, run: created.run, how: created.kind };
    case "conflict":
      return { ok: false, code: "idempotency_conflict", message: keyConflict(created.run.id) };
    case "thread_not_found": {
      const message = `There is no thread ${named}. Leave the thread out to start a new one.`;
      return { ok: false, code: "thread_not_found", message };
    }
    case "too_many_open":
      return { ok: false, code: "too_many_open_runs", message: tooManyOpen(created.limit) };
    case "copy_given_up": {
      const message = `Beginning a thread at ${named} took too long and was cancelled. Try again.`;
      return { ok: false, code: "point_not_found", message };
    }
  }
}

export const tooManyOpen = (limit: number): string =>
  `No run was started: ${limit} of your runs are unfinished, which is the maximum. Answer those that wait for a person, cancel those that nobody needs (cancel_deep_agent), or wait until one ends; the resources list them. "limits.openRuns" in the server's configuration sets the maximum.`;
