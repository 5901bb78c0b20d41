/** Accounts for the files, tokens and records of the main job. */
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { Lab } from "./main-job-lab.ts";
import { type MainJobModel, REPORT, expectedFiles } from "./main-job-model.ts";

/** One thing that was checked. */
export interface Row {
  what: string;
  /** What was found, in words. */
  found: string;
  ok: boolean;
}

const Usage = z.object({ inputTokens: z.number(), outputTokens: z.number() });
const Data = z.looseObject({
  callId: z.string().optional(),
  approvalId: z.string().optional(),
  questionId: z.string().optional(),
  usage: Usage.optional(),
});
const Event = z.looseObject({ seq: z.number(), agent: z.string(), kind: z.string(), data: Data });
type Event = z.output<typeof Event>;
const Report = z.looseObject({
  status: z.string(),
  answer: z.string().optional(),
  message: z.string().optional(),
  usage: z.looseObject({ input_tokens: z.number(), output_tokens: z.number() }),
});

export interface JobResult {
  lab: Lab;
  model: MainJobModel;
  report: unknown;
  events: readonly unknown[];
  /** What the person was asked and answered, in order. */
  answered: readonly string[];
}

export async function accountFor({ lab, model, report, events, answered }: JobResult): Promise<Row[]> {
  const run = Report.parse(report);
  const journal = events.map((event) => Event.parse(event));
  return [
    row("kills", `${lab.kills}`, lab.kills >= 3),
    row("run", `${run.status}: ${run.answer ?? run.message}`, run.answer?.includes(REPORT) === true),
    fileRow(lab),
    await copyRow(lab),
    // A form is shown again if the server was killed before it had stored the answer.
    row(
      "answers of the person",
      answered.join(", "),
      /^approval(?:, approval)*(?:, review){1,2}$/.test(answered.join(", ")),
    ),
    row("refused model requests", `${lab.refusals.length}`, lab.refusals.length === 0),
    sequenceRow(journal),
    pairRow(journal, "calls", { begun: "tool_started", ended: "tool_finished", id: "callId" }),
    pairRow(journal, "approvals", {
      begun: "approval_requested",
      ended: "approval_decided",
      id: "approvalId",
    }),
    pairRow(journal, "reviews", { begun: "question_asked", ended: "question_answered", id: "questionId" }),
    countRow(journal, "background agents", ["subagent_started", "subagent_finished"]),
    replyRow(journal, model),
    tokenRow(journal, run.usage),
  ];
}

const row = (what: string, found: string, ok: boolean): Row => ({ what, found, ok });

function fileRow(lab: Lab): Row {
  const [found, expected] = [lab.filesNow(), expectedFiles(lab.original)];
  const names = new Set([...found.keys(), ...expected.keys()]);
  const wrong = [...names].filter((name) => found.get(name) !== expected.get(name));
  const said = wrong.length === 0 ? `${found.size} as expected` : `wrong: ${wrong.join(", ")}`;
  return row("files", said, wrong.length === 0);
}

/** The copy is deleted after the end of the run is stored. */
async function copyRow(lab: Lab): Promise<Row> {
  for (let attempt = 0; attempt < 50 && lab.copies.length > 0; attempt += 1) await delay(100);
  return row("copies of the workspace that are left", `${lab.copies.length}`, lab.copies.length === 0);
}

function sequenceRow(journal: readonly Event[]): Row {
  const isWhole = journal.every(({ seq }, index) => seq === index + 1);
  return row(
    "journal",
    `${journal.length} events${isWhole ? "" : ", with gaps"}`,
    isWhole && journal.length > 0,
  );
}

/** Each beginning has one end, and each end a beginning. */
function pairRow(
  journal: readonly Event[],
  what: string,
  { begun, ended, id }: { begun: string; ended: string; id: "callId" | "approvalId" | "questionId" },
): Row {
  // Each of the two model servers counts the calls that it asks for.
  const ids = (kind: string) =>
    journal.filter((event) => event.kind === kind).map(({ agent, data }) => `${agent} ${data[id]}`);
  const [first, last] = [[...new Set(ids(begun))].sort(), ids(ended).sort()];
  return row(
    what,
    `${first.length} begun, ${last.length} ended`,
    first.length > 0 && isDeepStrictEqual(first, last),
  );
}

function countRow(journal: readonly Event[], what: string, kinds: readonly string[]): Row {
  const counts = kinds.map((kind) => journal.filter((event) => event.kind === kind).length);
  return row(
    what,
    kinds.map((kind, index) => `${counts[index]} ${kind}`).join(", "),
    counts.every((n) => n === 1),
  );
}

/** Each turn of each agent is booked; each booked reply was sent, and is booked once. */
function replyRow(journal: readonly Event[], model: MainJobModel): Row {
  const booked = journal.flatMap(({ data }) => data.usage?.inputTokens ?? []);
  const turns = new Map<string, number[]>();
  for (const { agent, turn, inputTokens } of model.sent)
    turns.set(`${agent} ${turn}`, [...(turns.get(`${agent} ${turn}`) ?? []), inputTokens]);
  const lost = [...turns].filter(([, sent]) => !sent.some((tokens) => booked.includes(tokens)));
  const sent = model.sent.map(({ inputTokens }) => inputTokens);
  const isOnce = new Set(booked).size === booked.length && booked.every((tokens) => sent.includes(tokens));
  const said = `${turns.size} turns, ${sent.length} replies sent, ${booked.length} booked`;
  const missing = lost.length === 0 ? "" : `, not booked: ${lost.map(([turn]) => turn).join(", ")}`;
  return row("replies of the model", said + missing, lost.length === 0 && isOnce);
}

/** The use of the run is the sum of what its journal has. */
function tokenRow(journal: readonly Event[], used: { input_tokens: number; output_tokens: number }): Row {
  const usages = journal.flatMap(({ data }) => data.usage ?? []);
  const input = usages.reduce((sum, { inputTokens }) => sum + inputTokens, 0);
  const output = usages.reduce((sum, { outputTokens }) => sum + outputTokens, 0);
  const said = `${used.input_tokens} in and ${used.output_tokens} out in the report, ${input} and ${output} in the journal`;
  return row("tokens", said, used.input_tokens === input && used.output_tokens === output);
}
