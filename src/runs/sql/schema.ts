/** The tables of runs. `runs.sql` has their columns and what these mean. */
import { type Migration, readMigrations } from "./sql-files.ts";
import runs from "./runs.sql" with { type: "text" };

export const RUN_MIGRATIONS: readonly Migration[] = readMigrations(runs);

/**
 * Condition of runs that are not in `run_texts`: open ones, whose texts still change, and long ones, which would hold up
 * whoever ends them. Their number stays small, and a search reads them.
 */
export const LEFT_OUT_OF_TEXTS =
  "(ended_at IS NULL OR length(task) + length(coalesce(name, '')) + length(coalesce(answer, '')) > 20000)";

/** Kinds of events that clients ask for across runs, as the index and its queries write them. */
export const IS_NEWS =
  "kind IN ('run_completed', 'run_failed', 'question_asked', 'approval_requested', 'todos', 'subagent_started', 'subagent_finished')";

/** The tables with rows that belong to a run, in the order in which they refer to each other. */
export const TABLES_OF_RUN =
  "run_events questions effects run_messages run_grants used_answers model_requests run_shares news_deliveries".split(
    " ",
  );
