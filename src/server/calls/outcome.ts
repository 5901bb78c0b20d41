import type { CreateMessageRequestParams } from "@modelcontextprotocol/server";
import type { RunView } from "../../runs/run.ts";
import type { MemoryHit } from "../../runs/service.ts";
import type { PersonRequest } from "../views/request-form.ts";
import type { RunList } from "../views/run-list.ts";

/** Media of a file, base64. */
export interface Media {
  type: "image" | "audio" | "resource";
  mimeType: string;
  data: string;
}

/** Outcome of a tool call in terms of the domain; results.ts turns it into a protocol result. */
export type Outcome =
  | { kind: "run"; view: RunView; note?: string; /** Character of the answer to begin at. */ offset?: number }
  /** The run as a task that the client polls. */
  | { kind: "task"; view: RunView; note?: string }
  /** Questions to a person, by key; the client repeats the call with the answers and `state`. */
  | {
      kind: "ask";
      requests: Record<string, PersonRequest>;
      /** Model calls for the client to answer, by key. */
      models: Record<string, CreateMessageRequestParams>;
      state: string;
    }
  | { kind: "runs"; list: RunList; note?: string }
  | { kind: "file"; path: string; content: string; media: Media[]; note?: string }
  | { kind: "memories"; query: string; hits: MemoryHit[]; note?: string }
  /** The message names the event, the affected thing, and the next step. */
  | { kind: "refused"; message: string };

/** Adds notes for the model. A request for input has no place for them. */
export function withNotes(outcome: Outcome, notes: readonly string[]): Outcome {
  if (notes.length === 0 || outcome.kind === "ask") return outcome;
  if (outcome.kind === "refused") return refused([outcome.message, ...notes].join(" "));
  const before = outcome.note === undefined ? [] : [outcome.note];
  return { ...outcome, note: [...before, ...notes].join(" ") };
}

export const refused = (message: string): Outcome => ({ kind: "refused", message });

/** Refuses a run that does not exist and one of another principal alike. */
export const unknownRun = (runId: string): Outcome =>
  refused(
    `No run has the id ${JSON.stringify(runId.slice(0, 80))}. Use a run_id that run_deep_agent returned, or call check_deep_agent without one for your recent runs; what ended long ago may have been forgotten.`,
  );
