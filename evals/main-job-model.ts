import type { WireAnswer, WireReply, WireRequest } from "../test/support/wire-server-protocol.ts";
import { setTimeout as delay } from "node:timers/promises";

export const TASK = "Bring the tide service up to date, and propose the change.";
const CHILD_TASK = "Read the documents of the tide service and report what they describe.";
/** The command that a person approves. Each execution leaves one line. */
export const COMMAND = "echo checked >> checks.log";
export const REPORT = "the documents describe three parts";
/** Turns of the background agent before its report. */
export const CHILD_TURNS = 8;
const DOCUMENTS = ["interface", "operations", "predictions"];
const NEW_FILES = 30;

export type JobAgent = "main" | "child";

/** One reply as it was sent, with the tokens that it cost. */
export interface SentReply {
  agent: JobAgent;
  turn: number;
  server: number;
  inputTokens: number;
  outputTokens: number;
}

/** The files of the workspace after the whole change was applied. */
export function expectedFiles(original: ReadonlyMap<string, string>): Map<string, string> {
  const files = new Map(original);
  files.set("checks.log", "checked\n");
  files.set("docs/report.md", `${REPORT}\n`);
  files.set("src/stations.js", `${NOTE}\n${original.get("src/stations.js") ?? ""}`);
  for (let n = 0; n < NEW_FILES; n += 1) files.set(newFile(n), `station ${n}\n`);
  files.delete("deploy/crontab");
  return files;
}

const NOTE = "// The list of stations.";
const FIRST_LINE = 'import { readFileSync } from "node:fs";';
const newFile = (n: number): string => `data/station-${n}.txt`;

/** Plays both agents by fixed rules. Each reply has token counts of its own, so that it is recognized in the journal. */
export class MainJobModel {
  readonly sent: SentReply[] = [];
  readonly #listeners = new Map<string, (server: number) => void>();

  /** Calls `listener` once, when this agent asks for this turn for the first time. */
  onRequest(agent: JobAgent, turn: number, listener: (server: number) => void): void {
    this.#listeners.set(`${agent} ${turn}`, listener);
  }

  async reply(request: WireRequest, server: number): Promise<WireReply> {
    const agent: JobAgent = request.tools.includes("start_async_task") ? "main" : "child";
    const turn = request.messages.filter(({ role }) => role === "assistant").length;
    const key = `${agent} ${turn}`;
    const listener = this.#listeners.get(key);
    this.#listeners.delete(key);
    listener?.(server);
    if (agent === "child") await delay(150);
    const n = this.sent.length;
    const usage = { inputTokens: 1000 + n, outputTokens: 20 + n };
    this.sent.push({ agent, turn, server, ...usage });
    return { ...(agent === "main" ? this.#main(request, turn) : this.#child(turn)), usage };
  }

  #main({ messages }: WireRequest, turn: number): WireAnswer {
    if (turn === 0)
      return {
        toolCalls: [
          {
            name: "write_todos",
            args: { todos: [{ content: "Update the service", status: "in_progress" }] },
          },
          {
            name: "start_async_task",
            args: { description: CHILD_TASK, subagent_type: "general-purpose" },
          },
          { name: "read_file", args: { file_path: "/workspace/src/stations.js" } },
        ],
      };
    if (turn === 1) return { toolCalls: [{ name: "execute", args: { command: COMMAND } }] };
    if (turn === 2) return { toolCalls: this.#edits() };
    const isReported = messages.some(({ role, text }) => role === "user" && text.includes(REPORT));
    if (!isReported) return { text: "I wait for the report." };
    const isWritten = messages.some(({ toolCalls }) =>
      toolCalls.some(({ args }) => args["file_path"] === PATH),
    );
    if (!isWritten)
      return { toolCalls: [{ name: "write_file", args: { file_path: PATH, content: `${REPORT}\n` } }] };
    return { text: `The service is up to date: ${REPORT}.` };
  }

  #edits(): WireAnswer["toolCalls"] {
    return [
      {
        name: "edit_file",
        args: {
          file_path: "/workspace/src/stations.js",
          old_string: FIRST_LINE,
          new_string: `${NOTE}\n${FIRST_LINE}`,
        },
      },
      { name: "delete", args: { file_path: "/workspace/deploy/crontab" } },
      ...Array.from({ length: NEW_FILES }, (_, n) => ({
        name: "write_file",
        args: { file_path: `/workspace/${newFile(n)}`, content: `station ${n}\n` },
      })),
    ];
  }

  #child(turn: number): WireAnswer {
    const name = DOCUMENTS[turn % DOCUMENTS.length] ?? "interface";
    return turn < CHILD_TURNS
      ? {
          toolCalls: [{ name: "read_file", args: { file_path: `/workspace/docs/${name}.md`, offset: turn } }],
        }
      : { text: `I read them: ${REPORT}.` };
  }
}

const PATH = "/workspace/docs/report.md";
