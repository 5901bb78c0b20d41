/** Runs, events and requests as the API shows them; their schemas are in routes.json. */
import { canonicalJson } from "../../core/json.ts";
import { activityOf, type RunEvent } from "../../runs/events.ts";
import type { RunRequest, RunSummary, RunView } from "../../runs/run.ts";
import { contentOf, isApproval, nameOf } from "../../runs/run.ts";
import type { ScheduleView } from "../../runs/schedule.ts";
import { offeredDecisions, offeredRules } from "../../tools/call-request.ts";
import { requestText } from "../../tools/check-answer.ts";
import { factsDigest } from "../page/proposed.ts";
import type { ScreenContext } from "../page/screen-context.ts";
import { limitsDocument } from "../views/limit-words.ts";
import { agentLabel, askedBy } from "../views/request-words.ts";
import { runDocument, usageDocument } from "../views/run-document.ts";

/** Names all that a person sees of a request before they decide. */
export function shownNow(request: RunRequest): string {
  const content = Object.entries(contentOf(request)).filter(([name]) => name !== "task");
  return factsDigest([request.id, canonicalJson(Object.fromEntries(content))]);
}

export function apiRequest(request: RunRequest): object {
  const own = { ...request, agent: agentLabel(request.agent), shown: shownNow(request) };
  if (!isApproval(request))
    return { ...own, text: requestText(request), asked_by: askedBy(request), asked: contentOf(request) };
  const { args, answer, same, preview } = request;
  const given = answer?.type === "edit" ? { type: "edit", arguments: answer.editedAction.args } : answer;
  const rules = offeredRules(request).map((offer) => offer.rules);
  const offered = { decisions: offeredDecisions(request), rules, same: same?.text };
  return { ...preview, ...own, ...offered, preview: preview.kind, arguments: args, answer: given };
}

export const apiRun = (view: RunView) => ({ ...runDocument(view), requests: view.requests.map(apiRequest) });

export const apiEvent = (event: RunEvent): object => {
  const { agent } = event;
  return {
    ...event,
    agent: agentLabel(agent),
    call_ids: agent.map((one) => one.callId),
    line: activityOf(event),
  };
};

export function apiSummary(run: RunSummary, { folderOf }: ScreenContext): object {
  const { usage, costUsd, hasUnknownCost, schedule, failure, place: queue, subagents: agents } = run;
  const ids = { run_id: run.id, schedule_id: schedule?.id, failure_reason: failure?.reason };
  // A task may be long.
  const name = nameOf(run).slice(0, 300).toWellFormed();
  const spent = usageDocument(usage, hasUnknownCost ? undefined : costUsd);
  return { ...run, ...ids, name, folder: folderOf?.(run), usage: spent, queue, agents };
}

export function apiSchedule(schedule: Partial<ScheduleView>, context: ScreenContext): object {
  const { limits, runs, environment = "" } = schedule;
  const own = { limits: limits && limitsDocument(limits), folder: context.folderOf?.({ environment }) };
  return { ...schedule, ...own, runs: runs?.map((run) => apiSummary(run, context)) };
}
