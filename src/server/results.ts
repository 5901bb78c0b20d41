import { inputRequired, type CallToolResult, type InputRequiredResult } from "@modelcontextprotocol/server";
import { oneLine, stripControl } from "../core/text.ts";
import type { RunView } from "../runs/run.ts";
import { APP_VIEW_META } from "./app/run-app.ts";
import type { Media, Outcome, PersonRequest } from "./outcome.ts";
import { fileUri, runUri } from "./resources/uris.ts";
import { taskFields } from "./tasks/view.ts";
import { runListText } from "./run-list.ts";
import { reportText, runReport, type AnswerWays } from "./run-report.ts";

export interface ResultOptions extends AnswerWays {
  /** Whether the client's protocol revision knows links to resources (2025-06-18 and later). */
  links: boolean;
  /** How long runs are kept, at least; `null`: they are not forgotten. */
  ttlMs: number | null;
  /** What an MCP App shows of the run, as HTML; models are not given it. */
  picture?: string | undefined;
}

/**
 * The only place that builds protocol results. Text and structured content each say everything: many
 * clients show the model only one of them.
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
        content: [{ type: "text", text: runListText(outcome.list) }],
        structuredContent: outcome.list,
      };
    case "file":
      return {
        content: [
          { type: "text", text: outcome.content },
          ...outcome.media.map((media) => mediaBlock(media, outcome.path)),
        ],
        structuredContent: { path: outcome.path, content: outcome.content },
      };
    case "memories":
      return memories(outcome);
    case "refused":
      return { content: [{ type: "text", text: outcome.message }], isError: true };
  }
}

function elicitation(request: PersonRequest) {
  if (request.mode !== "url") return inputRequired.elicit(request);
  return inputRequired.elicitUrl({ message: request.message, url: request.url });
}

/** What a call returns that waited for the run, or looks at it. */
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
    structuredContent: report,
    ...(options.picture === undefined ? {} : { _meta: { [APP_VIEW_META]: options.picture } }),
    ...(report.status === "failed" ? { isError: true } : {}),
  };
}

function mediaBlock({ type, mimeType, data }: Media, path: string): CallToolResult["content"][number] {
  return type === "resource"
    ? { type, resource: { uri: fileUri(path), mimeType, blob: data } }
    : { type, mimeType, data };
}

function memories({ query, hits, note }: Extract<Outcome, { kind: "memories" }>): CallToolResult {
  const found = hits.map(({ path, snippet, score }) => ({
    path,
    snippet: snippet.slice(0, MAX_SNIPPET),
    score,
  }));
  const text =
    found.length === 0
      ? `No memory matches ${JSON.stringify(oneLine(query, 200))}. Try fewer or other words.`
      : found.map(({ path, snippet }) => `${path}\n${stripControl(snippet)}`).join("\n\n");
  return {
    content: [{ type: "text", text: note === undefined ? text : `${text}\n\n${note}` }],
    structuredContent: { memories: found, ...(note === undefined ? {} : { note }) },
  };
}

const MAX_SNIPPET = 2000;
