import type { AuthInfo } from "@modelcontextprotocol/server";
import type { Scope } from "../../config/sections.ts";
import { DeepAgentError } from "../../core/errors.ts";
import type { PrincipalRuns, RunSchedules } from "../../runs/service.ts";

/** The rights of a token or of a session of the page. */
type Holder = { scopes: readonly string[] };

/** True if the holder has one of the scopes. Without authentication, everything is allowed. */
export function allows(auth: Holder | undefined, ...oneOf: readonly Scope[]): boolean {
  return auth === undefined || oneOf.some((scope) => auth.scopes.includes(scope));
}

/**
 * `service` for the holder of one token: what its scopes do not cover is refused. Every tool, resource and
 * task of a server instance reaches runs through here. Any scope may look at a run it names, because
 * starting and deciding show it as well; listing, files and memories need `read`.
 */
export function scopedRuns(service: PrincipalRuns, auth: Holder | undefined): PrincipalRuns {
  if (auth === undefined) return service;
  const demand = (...oneOf: readonly Scope[]): PrincipalRuns => {
    if (!allows(auth, ...oneOf)) throw insufficientScope(oneOf);
    return service;
  };
  return {
    news: scopedNews(demand),
    readiness: async (...args) => demand("run").readiness(...args),
    start: async (...args) => demand("run").start(...args),
    answered: async (...args) => demand(...ANY).answered(...args),
    tell: async (...args) => demand("run").tell(...args),
    modelCalls: async (...args) => demand("run").modelCalls(...args),
    replyToModel: async (...args) => demand("run").replyToModel(...args),
    cancel: async (...args) => demand("run").cancel(...args),
    rename: async (...args) => demand("run").rename(...args),
    delete: async (...args) => demand("run").delete(...args),
    ...schedulesBy(() => demand("run")),
    share: async (...args) => demand("run").share(...args),
    access: async (...args) => demand("read").access(...args),
    revoke: async (...args) => demand("run").revoke(...args),
    decide: async (...args) => demand("approve").decide(...args),
    answer: async (...args) => demand("approve").answer(...args),
    problemOf: async (...args) => demand("approve").problemOf(...args),
    reviewChange: async (...args) => demand("approve").reviewChange(...args),
    discardChange: async (...args) => demand("run").discardChange(...args),
    proposedChange: async (...args) => demand("read").proposedChange(...args),
    useAnswer: async (principal, runId, answer) => {
      demand(...ANY);
      if (answer.replies.length > 0) demand("run");
      if (answer.decisions.length + answer.answers.length > 0) demand("approve");
      return service.useAnswer(principal, runId, answer);
    },
    view: async (...args) => demand(...ANY).view(...args),
    watch: (...args) => demand(...ANY).watch(...args),
    watchLive: (...args) => demand(...ANY).watchLive(...args),
    watchStarts: (...args) => demand("read").watchStarts(...args),
    list: async (...args) => demand("read").list(...args),
    recentEvents: async (...args) => demand("read").recentEvents(...args),
    summaries: async (...args) => demand("read").summaries(...args),
    counts: async (...args) => demand("read").counts(...args),
    pending: async (...args) => demand("read").pending(...args),
    pendingQuestions: async (...args) => demand("read").pendingQuestions(...args),
    children: async (...args) => demand("read").children(...args),
    countPending: async (...args) => demand("read").countPending(...args),
    events: async (...args) => demand("read").events(...args),
    callTexts: async (...args) => demand("read").callTexts(...args),
    points: async (...args) => demand("read").points(...args),
    runFiles: async (...args) => demand("read").runFiles(...args),
    files: async (...args) => demand("read").files(...args),
    searchMemories: async (...args) => demand("read").searchMemories(...args),
    drawing: async (...args) => demand("read").drawing(...args),
    otherServers: async () => demand("read").otherServers(),
  };
}

const schedulesBy = (runs: () => PrincipalRuns): RunSchedules => ({
  schedules: async (...args) => runs().schedules(...args),
  addSchedule: async (...args) => runs().addSchedule(...args),
  editSchedule: async (...args) => runs().editSchedule(...args),
  pauseSchedule: async (...args) => runs().pauseSchedule(...args),
  resumeSchedule: async (...args) => runs().resumeSchedule(...args),
  removeSchedule: async (...args) => runs().removeSchedule(...args),
  runScheduleNow: async (...args) => runs().runScheduleNow(...args),
});

const scopedNews = (demand: (...oneOf: readonly Scope[]) => PrincipalRuns): PrincipalRuns["news"] => ({
  occurrences: async (...args) => demand("read").news.occurrences(...args),
  subscription: async (...args) => demand("read").news.subscription(...args),
  subscribe: async (...args) => demand("read").news.subscribe(...args),
  unsubscribe: async (...args) => demand(...ANY).news.unsubscribe(...args),
});

/** `service` for resources: reading them is what the scope `read` is for. */
export function readableRuns(service: PrincipalRuns, auth: AuthInfo | undefined): PrincipalRuns {
  if (!allows(auth, "read")) throw insufficientScope(["read"]);
  return service;
}

const ANY: readonly Scope[] = ["run", "approve", "read"];

function insufficientScope(oneOf: readonly Scope[]): DeepAgentError {
  const message = `The token of this connection does not have the scope ${oneOf.join(" or ")}. Use a token that has it.`;
  return new DeepAgentError("insufficient_scope", message);
}
