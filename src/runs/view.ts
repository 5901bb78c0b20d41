import type { AgentPath } from "../agent/agent.ts";
import { defined } from "../core/unknown.ts";
import { oneLine } from "../core/text.ts";
import { type GoalView, endedLine, judgedLine } from "./goal.ts";
import { type RunEvent, activityOf, relevanceOf, stepOf } from "./events.ts";
import type {
  AgentWork,
  ModelUsage,
  OpenCall,
  Place,
  Run,
  RunRequest,
  Span,
  SubagentView,
  TokenUsage,
} from "./run.ts";
import { isWithin } from "./run.ts";

type EventOf<K extends RunEvent["kind"]> = Extract<RunEvent, { kind: K }>;

/** Adds up what each model was used for, one event of the journal at a time. */
class UsageFold {
  readonly #models = new Map<string, ModelUsage>();

  add({ agent, data }: EventOf<"model_called">): void {
    const role = data.purpose ?? (agent.length === 0 ? "main" : "subagents");
    // A role is one word.
    const key = `${role} ${data.model}`;
    const none = { calls: 0, inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, costUsd: 0 };
    const sum = this.#models.get(key) ?? { ...none, model: data.model, role };
    this.#models.set(key, sum);
    sum.calls += 1;
    sum.inputTokens += data.usage.inputTokens;
    sum.outputTokens += data.usage.outputTokens;
    sum.cachedInputTokens += data.usage.cachedInputTokens;
    // One call whose price is not known makes the sum unknown.
    if (sum.costUsd === undefined || data.costUsd === undefined) delete sum.costUsd;
    else sum.costUsd += data.costUsd;
  }

  /** In the order in which they were first called. */
  all(): ModelUsage[] {
    return Array.from(this.#models.values(), (sum) => ({ ...sum }));
  }
}

/** The work of one agent so far, folded from its events. */
class WorkFold {
  readonly #usage = new UsageFold();
  readonly #busy = new BusyTimes();
  #model = "";
  #toolCalls = 0;
  #isRetrying = false;
  startedAt: number | undefined;
  endedAt: number | undefined;

  add(event: RunEvent): void {
    if (event.kind === "tool_started") {
      this.#toolCalls += 1;
      this.#busy.begin(event.data, event.time);
    } else if (event.kind === "tool_finished") this.#busy.end(event.data.callId, event.time);
    else if (event.kind === "model_retry") this.#isRetrying = true;
    else if (event.kind === "model_called") {
      this.#isRetrying = false;
      this.#usage.add(event);
      if (event.data.purpose === undefined) this.#model = event.data.model;
    }
  }

  /** Ends the agent together with the calls that did not finish. */
  end(time: number): void {
    this.#busy.endAll(time);
    this.endedAt = time;
  }

  work(): AgentWork {
    const used = this.#usage.all();
    const isPriced = used.every(({ costUsd }) => costUsd !== undefined);
    const costUsd = isPriced ? used.reduce((total, one) => total + (one.costUsd ?? 0), 0) : undefined;
    const sum = (key: keyof TokenUsage): number => used.reduce((total, one) => total + one[key], 0);
    return {
      ...defined({ startedAt: this.startedAt, endedAt: this.endedAt, costUsd }),
      ...defined({ busySince: this.endedAt === undefined ? this.#busy.since() : undefined }),
      toolCalls: this.#toolCalls,
      ...defined({ openCalls: this.#busy.openCalls() }),
      busy: this.#busy.spans(),
      model: this.#model,
      usage: {
        inputTokens: sum("inputTokens"),
        outputTokens: sum("outputTokens"),
        cachedInputTokens: sum("cachedInputTokens"),
      },
      ...(this.#isRetrying && this.endedAt === undefined ? { isRetrying: true as const } : {}),
    };
  }
}

const MAX_SPANS = 64;

/** Folder of the workspace in the tree of an agent. */
const WORKSPACE = "/workspace/";

/** When an agent was busy, in a bounded number of spans: with more, the shortest pauses are left out. */
class BusyTimes {
  #ended: Span[] = [];
  readonly #open = new Map<string, { call: OpenCall; began: number }>();

  begin({ callId, tool, within }: OpenCall, began: number): void {
    this.#open.set(callId, { call: { callId, tool, within }, began });
  }

  end(callId: string, time: number): void {
    const open = this.#open.get(callId);
    this.#open.delete(callId);
    if (open === undefined) return;
    this.#ended.push([open.began, time]);
    if (this.#ended.length > 2 * MAX_SPANS) this.#ended = joined(this.#ended);
  }

  endAll(time: number): void {
    for (const callId of this.#open.keys()) this.end(callId, time);
  }

  since(): number | undefined {
    return this.#open.size === 0
      ? undefined
      : Math.min(...Array.from(this.#open.values(), ({ began }) => began));
  }

  openCalls(): OpenCall[] | undefined {
    return this.#open.size === 0 ? undefined : Array.from(this.#open.values(), ({ call }) => call);
  }

  spans(): Span[] {
    return joined(this.#ended);
  }
}

function joined(spans: readonly Span[]): Span[] {
  const sorted = spans.toSorted(([one], [other]) => one - other);
  const pauses = sorted.slice(1).map(([start], index) => start - (sorted[index]?.[1] ?? start));
  const excess = sorted.length - MAX_SPANS;
  const shortest = excess <= 0 ? 0 : (pauses.toSorted((one, other) => one - other)[excess - 1] ?? 0);
  const result: [number, number][] = [];
  for (const [start, end] of sorted) {
    const last = result.at(-1);
    if (last !== undefined && start - last[1] <= shortest) last[1] = Math.max(last[1], end);
    else result.push([start, end]);
  }
  return result;
}

/** The parts of a RunView that follow from the journal, folded one event at a time, at a constant cost each. */
export class RunFold {
  /** Sequence number of the newest event folded in. */
  lastSeq = 0;
  activity = "";
  readonly #main = new WorkFold();
  readonly #subagents = new Map<
    string,
    Pick<SubagentView, "agent" | "name" | "description" | "status" | "step" | "background"> & {
      work: WorkFold;
    }
  >();
  readonly #files = new Set<string>();
  readonly #usage = new UsageFold();
  /** The calls that people were asked about, by the ids of the requests. */
  readonly #asking = new Map<string, string>();
  #goal: Omit<GoalView, "criteria"> = {};

  add(event: RunEvent): void {
    this.lastSeq = event.seq;
    // Another round after the end of a goal, because of a message to the run, opens it again.
    if (event.kind === "goal_judged") this.#goal = { judged: event.data, line: judgedLine(event.data) };
    if (event.kind === "goal_ended") this.#goal.line = endedLine(event.data);
    if (event.kind === "file_changed") this.#files.add(event.data.path);
    if (event.kind === "model_called") this.#usage.add(event);
    if (event.kind === "question_asked" || event.kind === "approval_requested") {
      const { data } = event;
      if (data.callId)
        this.#asking.set("questionId" in data ? data.questionId : data.approvalId, data.callId);
    }
    if (event.kind === "subagent_queued" || event.kind === "subagent_started") this.#addSubagent(event);
    else if (event.kind === "subagent_finished") this.#finishSubagent(event);
    else if (event.kind === "run_cancelled") this.#breakOff([], event.time, "cancelled");
    else if (relevanceOf(event) === "end") this.#breakOff([], event.time);
    else this.#step(event);
    this.activity = activityOf(event) ?? this.activity;
  }

  mainAgent({ createdAt, endedAt }: Pick<Run, "createdAt" | "endedAt">): AgentWork {
    return { ...this.#main.work(), startedAt: createdAt, ...defined({ endedAt }) };
  }

  /** In the order in which they were started, then those that wait. */
  subagents(): SubagentView[] {
    return Array.from(this.#subagents.values(), ({ work, ...view }) => Object.assign(view, work.work())).sort(
      (one, other) => Number(one.status === "queued") - Number(other.status === "queued"),
    );
  }

  withCalls(requests: readonly RunRequest[]): RunRequest[] {
    return requests.map((one) => ({ ...one, ...defined({ callId: this.#asking.get(one.id) }) }));
  }

  goal({ goal: criteria }: Pick<Run, "goal">): GoalView | undefined {
    return criteria && { criteria, ...this.#goal };
  }

  models(): ModelUsage[] {
    return this.#usage.all();
  }

  /**
   * Sorts by code unit, so that the order does not depend on the locale. A run that proposes changes lists applied
   * ones.
   */
  filesChanged({ changes, applied = {} }: Pick<Run, "changes" | "applied">): string[] {
    if (changes === undefined) return [...this.#files].sort();
    const own = [...this.#files].filter((path) => !path.startsWith(WORKSPACE));
    return [...own, ...Object.keys(applied).map((path) => WORKSPACE + path)].sort();
  }

  #addSubagent(event: EventOf<"subagent_queued" | "subagent_started">): void {
    const isQueued = event.kind === "subagent_queued";
    const key = agentKey(event.agent);
    const work = this.#subagents.get(key)?.work ?? new WorkFold();
    if (!isQueued) work.startedAt ??= event.time;
    work.endedAt = undefined;
    if (this.#subagents.get(key)?.status === "queued") this.#subagents.delete(key);
    this.#subagents.set(key, {
      agent: event.agent,
      name: event.data.name,
      description: event.data.description,
      status: isQueued ? "queued" : "working",
      step: isQueued ? "queued" : "started",
      ...(event.kind === "subagent_started" && event.data.background ? { background: true as const } : {}),
      work,
    });
  }

  #finishSubagent(event: EventOf<"subagent_finished">): void {
    const view = this.#subagents.get(agentKey(event.agent));
    if (view === undefined) return;
    this.#breakOff(event.agent, event.time);
    const end = event.data.status === "success" ? "completed" : "failed";
    view.status = event.data.cancelled ? "cancelled" : end;
    view.step = oneLine(event.data.report, 200);
  }

  /** Ends the work of an agent that has ended. */
  #breakOff(agent: AgentPath, time: number, status: "failed" | "cancelled" = "failed"): void {
    if (agent.length === 0) this.#main.end(time);
    for (const view of this.#subagents.values()) {
      if (!isWithin(agent, view.agent) || !["working", "queued"].includes(view.status)) continue;
      view.status = status;
      view.work.end(time);
    }
  }

  #step(event: RunEvent): void {
    if (event.kind === "tool_finished") {
      const { agent, data } = event;
      const queued = this.#subagents.get(agentKey([...agent, { name: "", callId: data.callId }]));
      // A call that ends while its subagent is queued was answered without starting it.
      if (queued?.status === "queued") Object.assign(queued, { status: "failed", step: data.summary });
    }
    if (event.agent.length === 0) this.#main.add(event);
    const view = this.#subagents.get(agentKey(event.agent));
    if (view === undefined) return;
    view.work.add(event);
    view.step = stepOf(event) ?? view.step;
  }
}

/** Distinguishes any two agents: ids come from models, so no separator is safe. */
const agentKey = (agent: AgentPath): string =>
  agent.map(({ callId }) => `${callId.length}:${callId}`).join("");

/** Describes the wait of a run that is not worked on and waits for no answer. */
export const placeText = ({ number, waiting, atWork }: Place): string =>
  atWork === 0 ? "waiting for a server of its workspace" : `queued: number ${number} of ${waiting}`;
