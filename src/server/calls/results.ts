/** Turns outcomes into protocol results and tasks. */
import {
  type CallToolResult,
  type CreateMessageRequestParams,
  type InputRequiredResult,
  inputRequired,
} from "@modelcontextprotocol/server";
import { isoTime } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { oneLine, stripControl } from "../../core/text.ts";
import type { RunView } from "../../runs/run.ts";
import type { ResultForm } from "./known-clients.ts";
import { APP_VIEW_META } from "../contracts/extensions.ts";
import { fileUri } from "../contracts/uris.ts";
import { runListText } from "../views/run-list.ts";
import { type AnswerWays, type RunReport, reportText, runReport } from "../views/run-report.ts";
import { asText } from "../views/quoting.ts";
import type { Outcome } from "./outcome.ts";
import type { PersonRequest } from "../views/request-form.ts";

export interface ResultOptions extends AnswerWays {
  form: ResultForm;
  /** Minimum time that runs are kept; `null`: they are not deleted. */
  ttlMs: number | null;
  /** Picture of the run for an MCP App, as HTML; models do not get it. */
  picture?: string | undefined;
  /** Returns more fields of the structured result. */
  extend?: ((report: RunReport) => Record<string, unknown>) | undefined;
}

/** Builds all protocol results, in the form that suits the client. Text and structured content are each complete. */
export function toResult(outcome: Outcome, options: ResultOptions): CallToolResult | InputRequiredResult {
  const { form } = options;
  switch (outcome.kind) {
    case "run":
      return runResult(outcome, options);
    case "task":
      return {
        ...runResult(outcome, options),
        resultType: "task",
        ...taskFields(outcome.view, options.ttlMs),
      };
    case "ask":
      return inputRequired({
        inputRequests: Object.fromEntries([
          ...Object.entries(outcome.requests).map(([key, request]) => [
            key,
            request.mode === "url"
              ? inputRequired.elicitUrl({ message: request.message, url: request.url })
              : inputRequired.elicit(request),
          ]),
          ...Object.entries(outcome.models).map(([key, call]) => [key, inputRequired.createMessage(call)]),
        ]),
        requestState: outcome.state,
      });
    case "runs":
      return {
        content: [{ type: "text", text: runListText(outcome.list) }, ...noteBlock(outcome)],
        ...structured(form, outcome.list),
      };
    case "file":
      return {
        content: [
          { type: "text", text: outcome.content },
          ...outcome.media.map(({ type, mimeType, data }) =>
            type === "resource"
              ? { type, resource: { uri: fileUri(outcome.path), mimeType, blob: data } }
              : { type, mimeType, data },
          ),
          ...noteBlock(outcome),
        ],
        ...structured(form, { path: outcome.path, content: outcome.content }),
      };
    case "memories":
      return memories(outcome, form);
    case "refused": {
      const { message } = outcome;
      const text = form.namesFailure && !message.startsWith("Error: ") ? `Error: ${message}` : message;
      return { content: [{ type: "text", text }], isError: true };
    }
  }
}

const structured = (form: ResultForm, structuredContent: Record<string, unknown>) =>
  form.structure ? { structuredContent } : {};

const noteBlock = ({ note }: { note?: string }) =>
  note === undefined ? [] : [{ type: "text" as const, text: note }];

/** Builds the result of a call that waited for a run, or looked at it. */
export function runResult(
  { view, note, offset }: Omit<Extract<Outcome, { kind: "run" }>, "kind">,
  options: Omit<ResultOptions, "ttlMs">,
): CallToolResult {
  const { form } = options;
  const report = runReport(view, options, { room: form.room, ...defined({ note, offset }) });
  return {
    content: [{ type: "text", text: reportText(report) }],
    ...structured(form, { ...report, ...options.extend?.(report) }),
    ...(options.picture === undefined ? {} : { _meta: { [APP_VIEW_META]: options.picture } }),
    ...(report.status === "failed" ? { isError: true } : {}),
  };
}

/** Lists the best memories that there is room for, and at least one. */
function memories(
  { query, hits, note }: Extract<Outcome, { kind: "memories" }>,
  form: ResultForm,
): CallToolResult {
  const all = hits.map(({ path, snippet, score }) => ({ path, snippet: snippet.slice(0, 2000), score }));
  let used = 1000;
  const end = all.findIndex(
    (hit, index) => (used += Buffer.byteLength(JSON.stringify(hit))) > form.room && index > 0,
  );
  const found = end < 0 ? all : all.slice(0, end);
  const texts = found.map(({ path, snippet }) => `${path}\n${stripControl(snippet)}`);
  if (texts.length === 0)
    texts.push(`No memory matches ${JSON.stringify(oneLine(query, 200))}. Try fewer or other words.`);
  const left = all.length - found.length;
  const rest = `${left} more matched and are not shown. Search with more words for fewer.`;
  const notes = [note ?? "", left === 0 ? "" : rest].filter(Boolean);
  return {
    content: [{ type: "text", text: [...texts, ...notes].join("\n\n") }],
    ...structured(form, { memories: found, ...(notes.length > 0 && { note: notes.join(" ") }) }),
  };
}

const MAX_STATUS_CHARACTERS = 300;

/** Input requests of the protocol by key, as they would be pushed to a 2025-era client. */
export type InputRequests = Record<
  string,
  | { method: "elicitation/create"; params: PersonRequest }
  | { method: "sampling/createMessage"; params: CreateMessageRequestParams }
>;

/**
 * A task as `tools/call` answers with it; the task of a run has the run's id. A run that failed is a completed task
 * whose result is an error: the protocol keeps `failed` for calls that could not be carried out.
 */
export function taskFields({ run, activity }: RunView, ttlMs: number | null, { lends = false } = {}) {
  const end = run.cancelReason ?? run.failure?.message ?? activity;
  return {
    taskId: run.id,
    status: run.status === "failed" ? "completed" : run.status,
    statusMessage: asText(end, MAX_STATUS_CHARACTERS),
    createdAt: isoTime(run.createdAt),
    lastUpdatedAt: isoTime(run.updatedAt),
    ttlMs,
    // Each call of a lent model waits for the next poll.
    pollIntervalMs: lends ? 500 : 2000,
  };
}

/** Returns a status message with the place to decide, for a client that cannot ask. Never cuts a command in it. */
export function decidedElsewhere(view: RunView, openCommand: string | undefined): string {
  const where =
    openCommand === undefined ? "in a client that shows forms" : `in a terminal with ${openCommand}`;
  return `${withNote(view, "This client cannot ask")}: decide ${where}`;
}

/** Returns the status message with a note for the person. */
export const withNote = ({ activity }: RunView, note: string): string =>
  `${asText(activity, MAX_STATUS_CHARACTERS)}. ${oneLine(note, MAX_STATUS_CHARACTERS)}`;
