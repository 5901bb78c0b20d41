/** Turns outcomes into protocol results and tasks. */
import {
  type CallToolResult,
  type CreateMessageRequestParams,
  type InputRequiredResult,
  inputRequired,
} from "@modelcontextprotocol/server";
import { isoTime } from "../../core/clock.ts";
import { defined } from "../../core/defined.ts";
import { oneLine, stripControl } from "../../core/text.ts";
import type { RunView } from "../../runs/run.ts";
import { APP_VIEW_META } from "../contracts/extensions.ts";
import { fileUri, runUri } from "../contracts/uris.ts";
import { runListText } from "../views/run-list.ts";
import { type AnswerWays, type RunReport, reportText, runReport } from "../views/run-report.ts";
import { asText } from "../views/quoting.ts";
import type { Outcome } from "./outcome.ts";
import type { PersonRequest } from "../views/request-form.ts";

export interface ResultOptions extends AnswerWays {
  /** True if the client's protocol revision has resource links (2025-06-18 and later). */
  links: boolean;
  /** Minimum time that runs are kept; `null`: they are not deleted. */
  ttlMs: number | null;
  /** Picture of the run for an MCP App, as HTML; models do not get it. */
  picture?: string | undefined;
  /** Returns more fields of the structured result. */
  extend?: ((report: RunReport) => Record<string, unknown>) | undefined;
}

/**
 * Builds all protocol results. Text and structured content are each complete: many clients show the model only one of
 * them.
 */
export function toResult(outcome: Outcome, options: ResultOptions): CallToolResult | InputRequiredResult {
  switch (outcome.kind) {
    case "run":
      return runResult(outcome.view, options, outcome.note);
    case "task":
      return {
        ...runResult(outcome.view, options, outcome.note),
        resultType: "task",
        ...taskFields(outcome.view, options.ttlMs),
      };
    case "ask":
      return inputRequired({
        inputRequests: Object.fromEntries([
          ...Object.entries(outcome.requests).map(([key, request]) => [key, elicitation(request)]),
          ...Object.entries(outcome.models).map(([key, call]) => [key, inputRequired.createMessage(call)]),
        ]),
        requestState: outcome.state,
      });
    case "runs":
      return {
        content: [{ type: "text", text: runListText(outcome.list) }, ...noteBlock(outcome)],
        structuredContent: outcome.list,
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
        structuredContent: { path: outcome.path, content: outcome.content },
      };
    case "memories":
      return memories(outcome);
    case "refused":
      return { content: [{ type: "text", text: outcome.message }], isError: true };
  }
}

const noteBlock = ({ note }: { note?: string }) =>
  note === undefined ? [] : [{ type: "text" as const, text: note }];

function elicitation(request: PersonRequest) {
  if (request.mode !== "url") return inputRequired.elicit(request);
  return inputRequired.elicitUrl({ message: request.message, url: request.url });
}

/** Builds the result of a call that waited for a run, or looked at it. */
export function runResult(
  view: RunView,
  options: Omit<ResultOptions, "ttlMs">,
  note?: string,
): CallToolResult {
  const report = runReport(view, options, note);
  const uri = runUri(report.run_id);
  return {
    content: [
      { type: "text", text: reportText(report) },
      ...(options.links ? [{ type: "resource_link" as const, uri, name: report.run_id, title: "Run" }] : []),
    ],
    structuredContent: { ...report, ...options.extend?.(report) },
    ...(options.picture === undefined ? {} : { _meta: { [APP_VIEW_META]: options.picture } }),
    ...(report.status === "failed" ? { isError: true } : {}),
  };
}

function memories({ query, hits, note }: Extract<Outcome, { kind: "memories" }>): CallToolResult {
  const found = hits.map(({ path, snippet, score }) => ({ path, snippet: snippet.slice(0, 2000), score }));
  const texts = found.map(({ path, snippet }) => `${path}\n${stripControl(snippet)}`);
  if (texts.length === 0)
    texts.push(`No memory matches ${JSON.stringify(oneLine(query, 200))}. Try fewer or other words.`);
  return {
    content: [{ type: "text", text: [...texts, ...(note === undefined ? [] : [note])].join("\n\n") }],
    structuredContent: { memories: found, ...defined({ note }) },
  };
}

/** `lending`: for clients that lend their model, because each model call waits for the next poll. */
const POLL_INTERVAL_MS = { plain: 2000, lending: 500 };
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
    pollIntervalMs: lends ? POLL_INTERVAL_MS.lending : POLL_INTERVAL_MS.plain,
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
