/**
 * Logs who started, answered, changed and shared runs: one line for each act, with names and ids, without contents.
 * docs/http.md describes the fields.
 */
import type { Logger } from "../core/logger.ts";
import { defined } from "../core/unknown.ts";
import type { PersonAnswer } from "../tools/request.ts";
import { type Principal, type Run, isFinal } from "./run.ts";
import type { RunGroups } from "./scopes.ts";
import type { AnswerOutcome } from "./service.ts";

/** A method that also notes its result. */
const noting =
  <Args extends unknown[], Result>(
    method: (...args: Args) => Promise<Result>,
    note: (result: Result, ...args: Args) => void,
  ) =>
  async (...args: Args): Promise<Result> => {
    const result = await method(...args);
    note(result, ...args);
    return result;
  };

/** Adds the log to the methods that change something. */
export function audited(groups: RunGroups, log: Logger): RunGroups {
  const { control, requests, access, rules } = groups;
  return {
    ...groups,
    control: {
      ...control,
      start: noting(control.start, (outcome, principal, { by }) => {
        if (!outcome.ok || outcome.how !== "started") return;
        const { id: runId, threadId } = outcome.run;
        log.info("run.started", { runId, threadId, principal, by });
      }),
      cancel: noting(control.cancel, (outcome) => {
        if (outcome.ok && !outcome.alreadyEnded) logEnd(outcome.run, log);
      }),
    },
    requests: {
      ...requests,
      answer: noting(requests.answer, (outcome, principal, runId, { answer }) =>
        logAnswer({ principal, runId, answer }, outcome, log),
      ),
      useAnswer: noting(requests.useAnswer, (used, principal, runId, { answers }) => {
        for (const [at, outcome] of used?.answered.entries() ?? [])
          logAnswer({ principal, runId, answer: answers[at]?.answer }, outcome, log);
      }),
    },
    rules: {
      ...rules,
      remove: noting(rules.remove, (isRemoved, principal, id) => {
        if (isRemoved) log.info("rule.removed", { id, principal });
      }),
    },
    access: {
      ...access,
      share: noting(access.share, (outcome, principal, runId) => {
        if (outcome.ok) log.info("share.created", { runId, principal });
      }),
      revoke: noting(access.revoke, (_isRevoked, principal, id) =>
        log.info("share.revoked", { id, principal }),
      ),
    },
  };
}

function logAnswer(
  { principal, runId, answer }: { principal: Principal; runId: string; answer: PersonAnswer | undefined },
  outcome: AnswerOutcome,
  log: Logger,
): void {
  if (!outcome.ok || outcome.how !== "stored") return;
  const { id: requestId, kind, status: decision, decidedBy: by } = outcome.request;
  log.info("request.answered", { runId, requestId, kind, principal, decision, by });
  if (answer?.type === "approve_always")
    log.info("rule.created", { runId, requestId, principal, by, rules: answer.rules.length });
}

export function logEnd(run: Run, log: Logger): void {
  if (!isFinal(run.status)) return;
  const { id: runId, principal, status, usage, costUsd, failure, createdAt, endedAt = createdAt } = run;
  const { inputTokens, outputTokens } = usage;
  const facts = { runId, principal, status, inputTokens, outputTokens, costUsd, reason: failure?.reason };
  log.info("run.ended", { ...defined(facts), seconds: (endedAt - createdAt) / 1000 });
}
