import type { AgentPath } from "../agent/agent.ts";
import { oneLine } from "../core/text.ts";
import type { Place } from "./queue.ts";
import { type RunEvent, activityOf, relevanceOf, stepOf } from "./events.ts";
import { type ModelUsage, type SubagentView, isWithin } from "./run.ts";

type EventOf<K extends RunEvent["kind"]> = Extract<RunEvent, { kind: K }>;

/** Adds up what each model was used for, one event of the journal at a time. */
export class UsageFold {
  readonly #models = new Map<string, ModelUsage>();

  add({ agent, data }: EventOf<"model_called">): void {
    const role = data.purpose ?? (agent.length === 0 ? "main" : "subagents");
    const key = JSON.stringify([data.model, role]);
    const { model, usage } = data;
    const none: ModelUsage = {
      model,
      role,
      calls: 0,
      inputTokens: 0,
      outputTokens: 0,
      cachedInputTokens: 0,
      costUsd: 0,
    };
    const { costUsd: before, ...sum } = this.#models.get(key) ?? none;
    // One call whose price is not known makes the sum unknown.
    const costUsd = before === undefined || data.costUsd === undefined ? undefined : before + data.costUsd;
    this.#models.set(key, {
      ...sum,
      calls: sum.calls + 1,
      inputTokens: sum.inputTokens + usage.inputTokens,
      outputTokens: sum.outputTokens + usage.outputTokens,
      cachedInputTokens: sum.cachedInputTokens + usage.cachedInputTokens,
      ...(costUsd === undefined ? {} : { costUsd }),
    });
  }

  /** In the order in which they were first called. */
  all(): ModelUsage[] {
    return [...this.#models.values()];
  }
}

/** US dollars for all of it; `undefined` as soon as a part is not known. */
export function totalCost(models: readonly ModelUsage[]): number | undefined {
  let sum = 0;
  for (const { costUsd } of models) {
    if (costUsd === undefined) return undefined;
    sum += costUsd;
  }
  return sum;
}

/** The same for people, such as `$0.0123`, or `at least $0.0123`; `undefined` when no price is known or nothing was paid. */
export function costText(models: readonly ModelUsage[]): string | undefined {
  const known = models.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0);
  if (known === 0) return undefined;
  return `${totalCost(models) === undefined ? "at least " : ""}${dollars(known)}`;
}

/** An amount above zero, never shown as zero. */
export const dollars = (amount: number): string =>
  amount < 0.0001 ? "less than $0.0001" : `$${amount.toFixed(4)}`;

const LINE = 200;

/**
 * The parts of a RunView that follow from the journal, folded one event at a time: the cost of an event
 * does not depend on how many came before.
 */
export class RunFold {
  /** Sequence number of the newest event folded in. */
  lastSeq = 0;
  activity = "";
  readonly #subagents = new Map<string, SubagentView>();
  readonly #files = new Set<string>();
  readonly #usage = new UsageFold();

  add(event: RunEvent): void {
    this.lastSeq = event.seq;
    if (event.kind === "file_changed") this.#files.add(event.data.path);
    if (event.kind === "model_called") this.#usage.add(event);
    if (event.kind === "subagent_queued" || event.kind === "subagent_started") this.#addSubagent(event);
    else if (event.kind === "subagent_finished") this.#finishSubagent(event);
    else if (relevanceOf(event) === "end") this.#breakOff([]);
    else this.#step(event);
    this.activity = activityOf(event) ?? this.activity;
  }

  /** In the order in which they were started. */
  subagents(): SubagentView[] {
    return [...this.#subagents.values()].map((view) => ({ ...view }));
  }

  models(): ModelUsage[] {
    return this.#usage.all();
  }

  /** Sorted by code unit, so that the order is the same everywhere. */
  filesChanged(): string[] {
    return [...this.#files].sort();
  }

  #addSubagent(event: EventOf<"subagent_queued" | "subagent_started">): void {
    const isQueued = event.kind === "subagent_queued";
    this.#subagents.set(keyOf(event.agent), {
      agent: event.agent,
      name: event.data.name,
      description: event.data.description,
      status: isQueued ? "queued" : "working",
      step: isQueued ? "waits for its turn" : "started",
      toolCalls: 0,
    });
  }

  #finishSubagent(event: EventOf<"subagent_finished">): void {
    const view = this.#subagents.get(keyOf(event.agent));
    if (view === undefined) return;
    this.#breakOff(event.agent);
    view.status = event.data.status === "success" ? "completed" : "failed";
    view.step = oneLine(event.data.report, LINE);
  }

  /** Nobody works any more for an agent that has ended. */
  #breakOff(agent: AgentPath): void {
    for (const view of this.#subagents.values()) {
      if (isWithin(agent, view.agent) && isOpen(view)) view.status = "failed";
    }
  }

  /** A call that ends while its subagent is queued was answered without starting it. */
  #refuse({ agent, data }: EventOf<"tool_finished">): void {
    const view = this.#subagents.get(keyOf([...agent, { name: "", callId: data.callId }]));
    if (view?.status !== "queued") return;
    view.status = "failed";
    view.step = data.summary;
  }

  #step(event: RunEvent): void {
    if (event.kind === "tool_finished") this.#refuse(event);
    const view = this.#subagents.get(keyOf(event.agent));
    if (view === undefined) return;
    if (event.kind === "tool_started") view.toolCalls += 1;
    view.step = stepOf(event) ?? view.step;
  }
}

const isOpen = ({ status }: SubagentView): boolean => status === "working" || status === "queued";

const keyOf = (agent: AgentPath): string => JSON.stringify(agent.map((segment) => segment.callId));

/** What a run does that nobody works on, though it waits for no answer. */
export const placeText = ({ number, waiting, atWork }: Place): string =>
  atWork === 0
    ? "waits for a server of its workspace"
    : `waits for its turn: number ${number} of ${waiting} in line`;

/** Keeps the folds of the runs that were looked at last. */
export class RunFolds {
  readonly #folds = new Map<string, RunFold>();
  readonly #capacity: number;

  constructor(capacity = 256) {
    this.#capacity = capacity;
  }

  of(runId: string): RunFold {
    return this.#folds.get(runId) ?? new RunFold();
  }

  keep(runId: string, fold: RunFold): void {
    this.#folds.delete(runId);
    this.#folds.set(runId, fold);
    const oldest = this.#folds.keys().next();
    if (this.#folds.size > this.#capacity && oldest.done !== true) this.#folds.delete(oldest.value);
  }
}
