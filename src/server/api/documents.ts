/** Documents of the API: values of the service with the fields of a schema, and what those need besides. */
import { z } from "zod";
import { isoTime } from "../../core/clock.ts";
import { canonicalJson } from "../../core/json.ts";
import { isRecord } from "../../core/unknown.ts";
import { activityOf, type RunEvent } from "../../runs/events.ts";
import type { RunRequest, RunSummary, RunView } from "../../runs/run.ts";
import { contentOf, isApproval, nameOf } from "../../runs/run.ts";
import type { Schedule } from "../../runs/schedule.ts";
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

type Context = Pick<ScreenContext, "folderOf">;
/** Fields of documents by their names, besides those of the value. */
const FIELDS: Readonly<Record<string, (value: never, context: Context) => object>> = {
  Run: (view: RunView) => ({ ...runDocument(view), requests: view.requests }),
  RunSummary: (run: RunSummary, { folderOf }) => ({
    run_id: run.id,
    // A task may be long.
    name: nameOf(run).slice(0, 300).toWellFormed(),
    folder: folderOf?.(run),
    schedule_id: run.schedule?.id,
    failure_reason: run.failure?.reason,
    queue: run.place,
    agents: run.subagents,
    usage: usageDocument(run.usage, run.hasUnknownCost ? undefined : run.costUsd),
  }),
  Request: (request: RunRequest) => {
    const own = { agent: agentLabel(request.agent), shown: shownNow(request) };
    if (!isApproval(request))
      return { ...own, text: requestText(request), asked_by: askedBy(request), asked: contentOf(request) };
    const { args, answer, same, preview, kind } = request;
    const given = answer?.type === "edit" ? { type: "edit", arguments: answer.editedAction.args } : answer;
    const rules = offeredRules(request).map((offer) => offer.rules);
    const offered = { decisions: offeredDecisions(request), rules, same: same?.text };
    return { ...preview, ...own, ...offered, kind, preview: preview.kind, arguments: args, answer: given };
  },
  Event: (event: RunEvent) => {
    const calls = event.agent.map(({ callId }) => callId);
    return { agent: agentLabel(event.agent), call_ids: calls, line: activityOf(event) };
  },
  Schedule: (schedule: Schedule, { folderOf }) => ({
    limits: schedule.limits && limitsDocument(schedule.limits),
    folder: folderOf?.(schedule),
  }),
};

/** The fields of a schema alone. The value has them in camel case too, and times as numbers. */
export function toDocument(schema: unknown, value: unknown, context: Context): unknown {
  if (value === undefined) return undefined;
  if (schema instanceof z.ZodOptional) return toDocument(schema.unwrap(), value, context);
  if (schema instanceof z.ZodISODateTime && typeof value === "number") return isoTime(value);
  if (schema instanceof z.ZodArray && Array.isArray(value))
    return value.map((item) => toDocument(schema.element, item, context));
  if (!(schema instanceof z.ZodObject) || !isRecord(value)) return value;
  // The values of a document with a name are those of its function.
  const more = FIELDS[schema.meta()?.id ?? ""]?.(value as never, context);
  const all: Record<string, unknown> = { ...value, ...more };
  const fields = Object.entries(schema.shape).map(([name, field]) => [
    name,
    toDocument(field, all[name] ?? all[camelCase(name)], context),
  ]);
  return Object.fromEntries(fields);
}

export const camelCase = (name: string): string =>
  name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
