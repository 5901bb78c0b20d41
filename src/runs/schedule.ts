/** Schedules, whose runs begin by themselves. */
import type { ChoiceProblem, RunChoices } from "./choices.ts";
import type { OrRefused, Principal, Run, RunSummary } from "./run.ts";

/** Handling of missed occurrences: none is started, the newest one, or all in turn up to a limit. */
export const CATCH_UP = ["skip", "one", "all"] as const;
type CatchUp = (typeof CATCH_UP)[number];

/** `RunChoices` are those of each of its runs. */
export interface Schedule extends RunChoices {
  id: string;
  principal: Principal;
  /** Key of the servers that start its runs and work on them. */
  environment: string;
  /** No other schedule of the principal has it. */
  name: string;
  task: string;
  /** Cron expression of five fields, or a nickname such as `@daily`. */
  expression: string;
  /** IANA name, such as `Europe/Berlin`. */
  timeZone: string;
  catchUp: CatchUp;
  /** Maximum number of occurrences that `all` catches up on. */
  catchUpLimit: number;
  /** True if a run starts while an earlier one has not ended. */
  overlap: boolean;
  createdAt: number;
  pausedAt?: number;
  /** The next occurrence. One in the past waits for a server, or for an earlier run. */
  dueAt: number;
}

export type SkipReason =
  | "too_old"
  | "previous_at_work"
  | "previous_waits"
  | "paused"
  | "changed"
  | "too_many_open"
  | "model_not_allowed"
  | "price_unknown";

/** Occurrences that started no run, from the first to the last one. */
export interface Skip {
  from: number;
  to: number;
  reason: SkipReason;
}

/** A schedule with its newest runs and skips, newest first. */
export interface ScheduleView extends Schedule {
  runs: RunSummary[];
  skips: Skip[];
}

/** An empty choice is that of the server; an empty goal is none. */
export interface ScheduleRequest extends Omit<RunChoices, "changes"> {
  changes?: RunChoices["changes"] | "";
  task: string;
  expression: string;
  /** Default: the beginning of the task. */
  name?: string;
  /** Default: that of the server. */
  timeZone?: string;
  /** Default `one`. */
  catchUp?: CatchUp;
  /** Default 10. */
  catchUpLimit?: number;
  /** Default false. */
  overlap?: boolean;
  /** Default: that of this server. */
  environment?: string;
  /** Folder of its runs, as for a start. Default: by `environment`. */
  folder?: string;
  /** True if an operator of the server chose; see `supervised`. */
  isOperators?: true;
}

/** Changes that a person makes; a field that is absent stays. */
export type ScheduleChanges = Partial<Omit<ScheduleRequest, "environment" | "folder">>;

export type ScheduleField =
  | "task"
  | "expression"
  | "name"
  | "timeZone"
  | "catchUp"
  | "catchUpLimit"
  | "folder"
  | keyof RunChoices;

export type ScheduleOutcome =
  | OrRefused<{ schedule: Schedule }, "not_found" | "too_many_schedules">
  | { ok: false; code: "invalid" | "name_taken"; field: ScheduleField; message: string };

export type RunNowOutcome = OrRefused<
  { run: Run },
  "not_found" | "previous_open" | "too_many_open_runs" | ChoiceProblem["code"]
>;

/** Occurrences that follow each other, and the one before them. */
export interface Occurrences {
  from: number;
  to: number;
  before?: number | undefined;
}

/** The next change of a schedule that is due. */
export interface Step {
  /** Occurrences that are too old to start. */
  skipped?: Occurrences;
  start?: Occurrences;
  /** The reason why that one is skipped instead. */
  refused?: SkipReason;
  dueAt: number;
}

/** `waits`: the earlier run has to end first. `stale`: another process was faster, or the schedule has changed. */
export type Advanced =
  | { kind: "started"; run: Run }
  | { kind: "skipped"; reason: SkipReason }
  | { kind: "waits" }
  | { kind: "stale" };
