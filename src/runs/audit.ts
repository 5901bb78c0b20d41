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

/** Adds the log to the methods that change something. */
export function audited(groups: RunGroups, log: Logger): RunGroups {
  const { control, requests, access, rules } = groups;
  return {
    ...groups,
    control: {
      ...control,
      start: async (principal, request) => {
        const outcome = await control.start(principal, request);
        if (outcome.ok && outcome.how === "started")
          log.info("run.started", {
            runId: outcome.run.id,
            threadId: outcome.run.threadId,
            principal,
            by: request.by,
          });
        return outcome;
      },
      cancel: async (principal, runId, reason) => {
        const outcome = await control.cancel(principal, runId, reason);
        if (outcome.ok && !outcome.alreadyEnded) logEnd(outcome.run, log);
        return outcome;
      },
    },
    requests: {
      ...requests,
      answer: async (principal, runId, given, by) => {
        const outcome = await requests.answer(principal, runId, given, by);
        logAnswer({ principal, runId, answer: given.answer }, outcome, log);
        return outcome;
      },
      useAnswer: async (principal, runId, signed) => {
        const used = await requests.useAnswer(principal, runId, signed);
        for (const [at, outcome] of used?.answered.entries() ?? [])
          logAnswer({ principal, runId, answer: signed.answers[at]?.answer }, outcome, log);
        return used;
      },
    },
    rules: {
      ...rules,
      remove: async (principal, id) => {
        const isRemoved = await rules.remove(principal, id);
        if (isRemoved) log.info("rule.removed", { id, principal });
        return isRemoved;
      },
    },
    access: {
      ...access,
      share: async (principal, runId, ...rest) => {
        const outcome = await access.share(principal, runId, ...rest);
        if (outcome.ok) log.info("share.created", { runId, principal });
        return outcome;
      },
      revoke: async (principal, id) => {
        const outcome = await access.revoke(principal, id);
        log.info("share.revoked", { id, principal });
        return outcome;
      },
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

/** Logs the end of a run, if it has ended. */
export function logEnd(run: Run, log: Logger): void {
  if (!isFinal(run.status)) return;
  const { id: runId, principal, status, usage, costUsd, failure, createdAt, endedAt = createdAt } = run;
  const { inputTokens, outputTokens } = usage;
  const facts = { runId, principal, status, inputTokens, outputTokens, costUsd, reason: failure?.reason };
  log.info("run.ended", { ...defined(facts), seconds: (endedAt - createdAt) / 1000 });
}
