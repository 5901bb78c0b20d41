/** Finds the calls and agents of a run that do nothing but wait for a person. */
import type { AgentPath, OpenCall, RunRequest, RunView } from "../../runs/run.ts";
import { isQuestion, isSameAgent, isWithin, waitingIn } from "../../runs/run.ts";

/** Each returns since when a call or an agent waits, or undefined if it works. */
export interface Waits {
  ofCall(agent: AgentPath, call: OpenCall): number | undefined;
  /** An agent waits if all of its open calls do. A turn that has ended waits for the agents in the background. */
  ofAgent(agent: AgentPath): number | undefined;
}

export function waitsIn(view: Pick<RunView, "requests" | "mainAgent" | "subagents">): Waits {
  const pending = waitingIn(view);
  const workOf = (agent: AgentPath) =>
    agent.length === 0 ? view.mainAgent : view.subagents.find((one) => isSameAgent(one.agent, agent));
  const requestsOf = (agent: AgentPath): RunRequest[] =>
    pending.filter((one) => {
      // A question of a graph at an unknown place stops the whole run.
      const isUnplaced = one.kind === "interrupt" && one.callId === undefined;
      return isSameAgent(one.agent, agent) || (isUnplaced && isWithin(one.agent, agent));
    });
  const background = (agent: AgentPath): (number | undefined)[] =>
    view.subagents
      .filter(
        (one) => one.background && one.status === "working" && isSameAgent(one.agent.slice(0, -1), agent),
      )
      .map((one) => ofAgent(one.agent));
  const ofCall: Waits["ofCall"] = (agent, { callId, tool }) => {
    if (tool === "task") return ofAgent([...agent, { callId, name: "" }]);
    const inner = workOf(agent)?.openCalls?.filter(({ within }) => within === callId) ?? [];
    const own = requestsOf(agent).filter((one) =>
      one.callId === undefined ? isQuestion(one) : `${one.callId}:`.startsWith(`${callId}:`),
    );
    const times = [...own.map(({ requestedAt }) => requestedAt), ...inner.map((call) => ofCall(agent, call))];
    return latest(times.length === 0 && tool === "check_async_task" ? background(agent) : times);
  };
  const ofAgent: Waits["ofAgent"] = (agent) => {
    const { openCalls = [], busy = [], ...work } = workOf(agent) ?? {};
    if ("status" in work && work.status !== "working") return undefined;
    const isQueued = ({ callId }: OpenCall): boolean =>
      view.subagents.some((one) => one.status === "queued" && one.agent.at(-1)?.callId === callId);
    const calls = openCalls.filter((call) => !isQueued(call)).map((call) => ofCall(agent, call));
    const times = [...requestsOf(agent).map(({ requestedAt }) => requestedAt), ...calls];
    const since = latest(times.length === 0 ? background(agent) : times);
    return since && Math.max(since, ...busy.map(([, end]) => end));
  };
  return { ofCall, ofAgent };
}

/** Returns the latest of the times, or undefined if one is missing or there is none. */
const latest = (times: readonly (number | undefined)[]): number | undefined =>
  times.length === 0 ? undefined : times.reduce((one, other) => one && other && Math.max(one, other));
