import {
  isFault,
  isWireError,
  type WireMessage,
  type WireReply,
  type WireRequest,
} from "../test/support/wire-server-protocol.ts";
import { type Call, type EvalTask, markOf, type Result, type Seen } from "./task.ts";
import { TASKS } from "./tasks/tasks.ts";

/** Replaces every fourth answer of a task; `count` counts the requests of that task. */
type Fault = (answer: WireReply, count: number) => WireReply;

/** Breaks an answer in its middle; an error of the task's own provider stays as it is. */
const broken =
  (fault: "cut" | "end"): Fault =>
  (answer) =>
    isFault(answer) || isWireError(answer) ? answer : { fault, answer };

/** Faults of a provider that the ideal model can be disturbed by. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  cut: broken("cut"),
  end: broken("end"),
  refuse: () => ({ fault: "refuse" }),
  overloaded: (_answer, count) => {
    const error = { status: 529, message: "Overloaded", type: "overloaded_error" };
    return count % 8 === 3 ? error : { fault: "report", error };
  },
};

/** A model that solves every task, disturbed by `fault`. Each task counts its own requests. */
export function idealModel(
  fault: Fault = (answer) => answer,
): (thought: { request: WireRequest }) => WireReply {
  const counts = new Map<EvalTask, number>();
  return ({ request }) => {
    const all = JSON.stringify(request.messages);
    const task = TASKS.find(({ name }) => all.includes(markOf(name)));
    if (!task) return { status: 400, message: "a request without a task" };
    const count = counts.get(task) ?? TASKS.indexOf(task) % 4;
    counts.set(task, count + 1);
    try {
      const answer = answerOf(task, request);
      return count % 4 === 3 ? fault(answer, count) : answer;
    } catch (error) {
      return { status: 400, message: `${task.name}: ${String(error)}` };
    }
  };
}

/** What the ideal model of `task` answers to a request. */
function answerOf(task: EvalTask, request: WireRequest): WireReply {
  const { messages, tools } = request;
  const all = messages.map(({ text }) => text).join("\n");
  if (tools.length === 0 && task.summary) return { text: task.summary(all) };
  const at = messages.findLastIndex(({ role, text }) => role === "user" && text.includes(markOf(task.name)));
  const after = messages.slice(at + 1);
  const seen: Seen = {
    system: messages
      .filter(({ role }) => role === "system")
      .map(({ text }) => text)
      .join("\n"),
    task: messages[at]?.text ?? "",
    before: messages
      .slice(0, at)
      .map(({ text }) => text)
      .join("\n"),
    told: after
      .filter(({ role }) => role === "user")
      .map(({ text }) => text)
      .join("\n"),
    request,
  };
  const fault = task.fault?.(seen);
  if (fault) return fault;
  const script = (tools.includes("task") ? task.oracle : (task.worker ?? task.oracle))(seen);
  let step = script.next();
  for (const turn of after.filter(({ toolCalls }) => toolCalls.length > 0)) {
    if (step.done) throw new Error("calls follow the answer");
    step = script.next(resultsOf(turn, step.value, after));
  }
  if (!step.done) return { toolCalls: step.value };
  return typeof step.value === "string" ? { text: step.value } : step.value;
}

/** The results of a reply, which must be the one that was given. */
function resultsOf(
  { toolCalls }: WireMessage,
  given: readonly Call[],
  after: readonly WireMessage[],
): Result[] {
  const made = toolCalls.map(({ name, args }) => ({ name, args }));
  if (JSON.stringify(made) !== JSON.stringify(given)) {
    throw new Error(`the history has ${JSON.stringify(made)} in the place of ${JSON.stringify(given)}`);
  }
  return toolCalls.map(({ id }) => {
    const results = after.flatMap(({ toolResults }) => toolResults).filter((result) => result.id === id);
    const [result] = results;
    if (!result || results.length > 1) throw new Error(`${results.length} results of one call`);
    return result;
  });
}
