/** The event types that clients can request, with their parameters and contents. */
import { z } from "zod";
import { EVENT_TYPES, type EventType, type NewsType } from "../../runs/news.ts";

export const Arguments = z.strictObject({
  run_id: z.string().min(1).max(200).optional().describe("Only events of this run. Default: all your runs."),
});
const text = (description: string) => z.string().describe(description);

const FACTS = {
  run_id: text("The run; check_deep_agent takes it."),
  thread_id: text("Its conversation."),
  name: text("Name of the run, or the beginning of its task."),
  summary: text("What happened, or what is needed, in a few words."),
  schedule: text("The schedule that started it.").optional(),
  url: text("The page of the run, where people log in.").optional(),
};

const TYPES: Readonly<Record<EventType, { description: string; more?: z.ZodRawShape }>> = {
  "run.finished": {
    description: "A run has completed; its answer can be read.",
    more: { stop_reason: text("Why it ended early: a limit, or `goal_not_met`.").optional() },
  },
  "run.failed": { description: "A run has failed.", more: { reason: text("Why, as a stable word.") } },
  "question.asked": {
    description: "A run asks a person a question.",
    more: { question_id: text("The question.") },
  },
  "approval.requested": {
    description: "A run waits for a person's approval of a call.",
    more: { approval_id: text("The approval."), tool: text("The tool.") },
  },
  "budget.reached": {
    description: "A run ended at one of its limits, with what it has; run.finished comes as well.",
    more: { stop_reason: text("The limit.") },
  },
  "run.progress": { description: "A run ticked off a step, or a subagent started or ended." },
};

/** Steps come too often for a request each. */
export const isForWebhooks = (type: EventType): type is NewsType => type !== "run.progress";

export const isEventType = (name: string): name is EventType => EVENT_TYPES.some((type) => type === name);

/** The catalogue. `hasWebhooks`: the client may subscribe an address. */
export function describeEvents(hasWebhooks: boolean): object[] {
  return EVENT_TYPES.map((name) => {
    const { description, more = {} } = TYPES[name];
    return {
      name,
      description,
      delivery: ["poll", "push", ...(hasWebhooks && isForWebhooks(name) ? ["webhook"] : [])],
      inputSchema: toJsonSchema(Arguments),
      payloadSchema: toJsonSchema(z.object({ ...FACTS, ...more })),
    };
  });
}

function toJsonSchema(schema: z.ZodType): object {
  const { $schema: _version, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}
