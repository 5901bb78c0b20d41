/** Waits for a call that another MCP server carries out as a task: asks for its state until it ends. */
import { setTimeout as wait } from "node:timers/promises";
import { codeOf, isParked } from "../../core/errors.ts";
import { oneLine } from "../../core/text.ts";
import { recordOf } from "../../core/unknown.ts";
import { TooManyQuestions } from "../../tools/question-quota.ts";
import type { ToolContext, ToolResult } from "../../tools/tool.ts";
import { type ReadResult, type TheirTask, readResult } from "./answers.ts";
import { type McpConnection, isAnswer } from "./connection.ts";
import { type InputRequired, answerInputRequests } from "./elicitation.ts";

/** Time between two looks, in ms: the server's interval within these limits. */
const INTERVAL = { least: 250, usual: 2000, most: 60_000 };
/** Consecutive failed looks before the task is abandoned: about five minutes. */
const MOST_FAILURES = 12;
/**
 * Waits until the task has ended, also while the server cannot be reached for a while. A question of the task is asked
 * as one of the call is. The task is cancelled with the run.
 *
 * @param older requests the result, if the task is one of 2025-11-25; its server asks its questions during the request.
 * @throws the error of the server, or of the connection.
 */
export async function resultOfTask(
  connection: McpConnection,
  { taskId, isOlder }: TheirTask,
  { signal, ask: askPerson }: Pick<ToolContext, "signal" | "ask">,
  older: () => Promise<ToolResult | InputRequired | TheirTask>,
): Promise<ReadResult | ToolResult> {
  const ask = (method: string, params: object = {}, until = signal): Promise<Record<string, unknown>> =>
    connection.ask(method, { taskId, ...params }, { signal: until });
  /** Asks again while the server cannot be reached. */
  const insist = async (method: string, params?: object): Promise<Record<string, unknown>> => {
    for (let failures = 1; ; failures += 1) {
      try {
        return await ask(method, params);
      } catch (error) {
        signal.throwIfAborted();
        const isUnknown = Reflect.get(Object(error), "code") === -32_602;
        if (isUnknown || failures > MOST_FAILURES) throw error;
      }
      await wait(Math.min(1000 * 2 ** (failures - 1), 60_000), undefined, { signal });
    }
  };
  let broken = 0;
  const answered = new Set<string>();
  try {
    for (;;) {
      const state = await insist("tasks/get");
      const isReady = isOlder && ["input_required", "completed", "failed"].includes(String(state["status"]));
      const failed = (error: unknown): void => {
        // The task still waits if the person did not answer in time, or the connection broke.
        const isOver = isAnswer(error) || error instanceof TooManyQuestions || (broken += 1) > MOST_FAILURES;
        if (isOver && codeOf(error) !== "REQUEST_TIMEOUT") throw error;
      };
      const answer = isReady ? await older().catch(failed) : undefined;
      if (answer && "content" in answer) return answer;
      const ended = !isReady && readTaskEnd(state);
      if (ended) return ended;
      // A server may still show a question when it has the answer: nobody is asked the same question twice.
      const all = state.status === "input_required" ? Object.entries(recordOf(state.inputRequests)) : [];
      const others = all.filter((request) => !answered.has(JSON.stringify(request)));
      const inputRequests = Object.fromEntries(others) as InputRequired["inputRequests"] & {}; // each is checked before it is asked
      const isAsked = Object.keys(inputRequests).length > 0;
      if (isAsked) {
        const { inputResponses } = await answerInputRequests(connection.name, { inputRequests }, askPerson);
        await insist("tasks/update", { inputResponses });
        for (const request of Object.entries(inputRequests)) answered.add(JSON.stringify(request));
      }
      const wanted = Number(state["pollIntervalMs"] ?? state["pollInterval"] ?? INTERVAL.usual);
      const usual = Number.isFinite(wanted) ? wanted : INTERVAL.usual;
      const interval = Math.max(INTERVAL.least, Math.min(usual, INTERVAL.most));
      await wait(isAsked ? INTERVAL.least : interval, undefined, { signal });
    }
  } catch (error) {
    if ((signal.aborted && !isParked(signal)) || error instanceof TooManyQuestions)
      await ask("tasks/cancel", {}, AbortSignal.timeout(5000)).catch(() => undefined); // it ends by itself
    throw error;
  }
}

/** The result of a task that has ended. One that was not carried out has an error, as a call has. */
function readTaskEnd(state: Readonly<Record<string, unknown>>): ReadResult | undefined {
  const { status, result, error, statusMessage } = state;
  if (status === "completed") return readResult(recordOf(result));
  if (status !== "failed" && status !== "cancelled") return undefined;
  const said = recordOf(error)["message"] ?? statusMessage;
  const why = typeof said === "string" && said !== "" ? `: ${oneLine(said, 1000)}` : "";
  const text = `The server's task ${status === "failed" ? "failed" : "was cancelled"}${why}`;
  return readResult({ content: [{ type: "text", text }], isError: true });
}
