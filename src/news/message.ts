/** The words of news: for programs as JSON, for people as a title and a line. */
import { isoTime } from "../core/clock.ts";
import { defined } from "../core/unknown.ts";
import { displayName, oneLine } from "../core/text.ts";
import type { News } from "../runs/news.ts";
import { endedEarly } from "../runs/run.ts";

/** Longest name of a run, in characters. */
const MAX_RUN_NAME = 120;

/** A notification about an event: the run, and the needed action. */
export interface Message {
  title: string;
  /** Such as `needs your approval: run a command`. */
  text: string;
  /** The page of the run. Absent: there is none at an address that anybody may know. */
  url?: string;
}

/** `url`: the page of the run, at an address without secrets. */
export const newsMessage = (news: News, url: string | undefined): Message => ({
  title: runName(news),
  text: newsText(news),
  ...defined({ url }),
});

/**
 * The JSON that webhooks and commands get. It has no content of files, no arguments of calls, no question and no
 * answer: these may hold secrets, and are on the page.
 */
export function newsPayload(news: News, url: string | undefined): object {
  return { type: news.type, timestamp: isoTime(news.time), data: newsData(news, url) };
}

export function newsData(news: News, url: string | undefined): Record<string, string> {
  const { runId, threadId, schedule, event, questions = 1 } = news;
  const facts = {
    run_id: runId,
    thread_id: threadId,
    name: runName(news),
    summary: newsText(news),
    ...defined({ schedule, url }),
  };
  switch (event.kind) {
    case "approval_requested":
      return { ...facts, approval_id: event.data.approvalId, tool: event.data.tool };
    case "question_asked":
      return {
        ...facts,
        question_id: event.data.questionId,
        ...(questions > 1 ? { questions: String(questions) } : {}),
      };
    case "run_failed":
      return { ...facts, reason: event.data.reason };
    case "run_completed":
      return { ...facts, ...defined({ stop_reason: event.data.stopReason }) };
    default:
      return facts;
  }
}

const runName = ({ name }: News): string => oneLine(displayName(oneLine(name, MAX_RUN_NAME)), MAX_RUN_NAME);

function newsText({ event, questions = 1 }: News): string {
  switch (event.kind) {
    case "approval_requested": {
      const { tool, call } = event.data;
      // The call without its object: a command may contain a secret.
      const ofFile = call?.kind === "file" ? `${call.act.toLowerCase()} a file` : `call ${displayName(tool)}`;
      return `needs your approval: ${call?.kind === "command" ? "run a command" : ofFile}`;
    }
    case "question_asked":
      if (questions > 1) return `asks you ${questions} questions`;
      return event.data.server === undefined
        ? "asks you a question"
        : `asks you a question of the MCP server ${displayName(event.data.server)}`;
    case "run_failed":
      return `failed (${event.data.reason})`;
    case "run_completed":
      return event.data.stopReason === undefined ? "finished" : endedEarly(event.data.stopReason);
    case "todos": {
      const { todos } = event.data;
      const done = todos.filter(({ status }) => status === "completed").length;
      return `${done} of ${todos.length} ${todos.length === 1 ? "step" : "steps"} done`;
    }
    case "subagent_started":
      return `started the subagent ${displayName(event.data.name)}`;
    case "subagent_finished":
      return `the subagent ${displayName(event.data.name)} ${event.data.status === "success" ? "finished" : "failed"}`;
    default:
      return event.kind.replaceAll("_", " ");
  }
}
