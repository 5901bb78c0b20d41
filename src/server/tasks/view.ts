import type { CallToolResult, CreateMessageRequestParams } from "@modelcontextprotocol/server";
import { isoTime } from "../../core/clock.ts";
import { oneLine, stripControl } from "../../core/text.ts";
import type { PersonRequest } from "../outcome.ts";
import { isFinal, type RunView } from "../../runs/run.ts";

/** Extension of 2026-07-28 under which a call may answer with a task; client and server both declare it. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

const POLL_INTERVAL_MS = 2000;
/** Of clients that lend their model: each call of it waits for the next poll. */
const LENDING_POLL_INTERVAL_MS = 500;
const MAX_STATUS_CHARACTERS = 300;

/** Members of every task shape. The task of a run is the run: it has its id. */
export interface TaskFields {
  taskId: string;
  status: RunView["run"]["status"];
  statusMessage: string;
  createdAt: string;
  lastUpdatedAt: string;
  /** How long it is kept from `createdAt` on, at least; `null`: it is not forgotten. */
  ttlMs: number | null;
  pollIntervalMs: number;
  [member: string]: unknown;
}

/** Input request of the protocol, as it would be pushed to a 2025-era client. */
export interface ElicitationRequest {
  method: "elicitation/create";
  params: PersonRequest;
}

/** The same, for a client that lends its model. */
export interface SamplingInputRequest {
  method: "sampling/createMessage";
  params: CreateMessageRequestParams;
}

export type InputRequests = Record<string, ElicitationRequest | SamplingInputRequest>;

/**
 * A task as `tools/call` answers with it. A run that failed is a completed task whose result is an error:
 * the protocol keeps `failed` for calls that could not be carried out.
 */
export function taskFields(
  { run, activity }: RunView,
  ttlMs: number | null,
  { lends = false } = {},
): TaskFields {
  const end = run.cancelReason ?? run.failure?.message ?? activity;
  return {
    taskId: run.id,
    status: run.status === "failed" ? "completed" : run.status,
    statusMessage: oneLine(stripControl(end), MAX_STATUS_CHARACTERS),
    createdAt: isoTime(run.createdAt),
    lastUpdatedAt: isoTime(run.updatedAt),
    ttlMs,
    pollIntervalMs: lends ? LENDING_POLL_INTERVAL_MS : POLL_INTERVAL_MS,
  };
}

/** The status message that tells where to decide, for a client that cannot ask. A command in it is never cut. */
export function decidedElsewhere(view: RunView, openCommand: string | undefined): string {
  const where =
    openCommand === undefined ? "in a client that shows forms" : `in a terminal with ${openCommand}`;
  return `${withNote(view, "This client cannot ask")}: decide ${where}`;
}

/** The status message with what a person has to know besides. */
export const withNote = ({ activity }: RunView, note: string): string =>
  `${oneLine(stripControl(activity), MAX_STATUS_CHARACTERS)}. ${oneLine(note, MAX_STATUS_CHARACTERS)}`;

/** What `tasks/get` adds for the status: the open questions, or the result the call would have had. */
export async function taskDetails(
  { run }: RunView,
  questions: InputRequests,
  result: () => Promise<CallToolResult>,
): Promise<{ status?: "input_required"; inputRequests?: InputRequests; result?: CallToolResult }> {
  // A run keeps its place while its client's model is asked; the client has to see that it is.
  const isAsking = run.status === "input_required" || Object.keys(questions).length > 0;
  if (!isFinal(run.status)) return isAsking ? { status: "input_required", inputRequests: questions } : {};
  if (run.status === "completed" || run.status === "failed") return { result: await result() };
  return {};
}
