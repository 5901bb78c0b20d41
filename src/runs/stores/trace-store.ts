import type { TracePlace } from "../../agent/agent.ts";
import type { Database } from "../../storage/database.ts";

/** Keeps a run's spans in one trace, whichever process works on it. */
export function tracePlace(database: Database, runId: string): TracePlace {
  const read = database.prepare<[string], { traceparent: string | null }>(
    "SELECT traceparent FROM runs WHERE id = ?",
  );
  const write = database.prepare<[string, string]>(
    "UPDATE runs SET traceparent = ? WHERE id = ? AND traceparent IS NULL",
  );
  return {
    get before() {
      return read.get(runId)?.traceparent ?? undefined;
    },
    began: (traceparent) => void write.run(traceparent, runId),
  };
}
