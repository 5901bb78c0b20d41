/** What holds in every world, whatever happened. docs/reliability.md has a sentence for each name. */
import { newsId, newsOf } from "../../src/runs/sql/subscriptions.ts";
import { REPLY_TOKENS } from "./moves.ts";
import { type PersonCall, conversation } from "./conversation.ts";
import { isLinearizable } from "./linearizable.ts";
import type { People } from "./people.ts";
import type { World } from "./world.ts";

/** What is left of a world in the end. */
export type EndedWorld = Pick<World, "database" | "workspace" | "received" | "tokenLimit" | "problem"> & {
  agents: Pick<World["agents"], "tokensOf" | "messages">;
};

const MINUTE = 60_000;

interface RunRow {
  id: string;
  thread_id: string;
  parent_id: string | null;
  status: string;
  tokens: number;
  lease_owner: string | null;
  last_seq: number;
  schedule_id: string | null;
  occurrence: number | null;
  stop_reason: string | null;
  applied: string | null;
  idempotency_key: string | null;
}

interface EventRow {
  seq: number;
  kind: string;
  data: string;
}

const FINAL = ["completed", "failed", "cancelled"];

/** Checks a world at its end, when nothing is left to do. */
export function checkWorld(world: EndedWorld, people: People): void {
  const { database } = world;
  const runs = database
    .prepare(
      "SELECT id, thread_id, parent_id, status, input_tokens + output_tokens AS tokens, lease_owner, last_seq, schedule_id, occurrence, stop_reason, applied, idempotency_key FROM runs ORDER BY number",
    )
    .all() as RunRow[];
  for (const run of runs) {
    if (!FINAL.includes(run.status)) world.problem(`ends: run ${run.id} is ${run.status} at the end`);
    if (run.status === "failed") world.problem(`ends: run ${run.id} failed: ${failureOf(world, run.id)}`);
    if (run.lease_owner !== null) world.problem(`ends: run ${run.id} is leased at the end`);
    if (run.parent_id === null) checkTree(world, run, runs);
  }
  const left = database.prepare("SELECT count(*) AS count FROM effects").get() as { count: number };
  if (left.count > 0) world.problem(`ends: ${left.count} effects are left`);
  checkMessages(world, people, runs);
  checkOrder(world, people.calls, runs);
  checkSchedules(world, people, runs);
  checkWorkspace(world, runs);
}

/** The folder has what was applied of each proposed change, whole files only, and all that the person wrote. */
function checkWorkspace(world: EndedWorld, runs: readonly RunRow[]): void {
  const applied = new Map<string, Set<string>>();
  for (const { thread_id, applied: noted } of runs) {
    const files = Object.keys(JSON.parse(noted ?? "{}") as object);
    applied.set(thread_id, new Set([...(applied.get(thread_id) ?? []), ...files]));
  }
  for (const problem of world.workspace.problems(applied)) world.problem(problem);
}

function failureOf({ database }: EndedWorld, id: string): string {
  const { text } = database.prepare("SELECT failure_message AS text FROM runs WHERE id = ?").get(id) as {
    text: string;
  };
  return text;
}

/** A run with its background runs. */
function checkTree(world: EndedWorld, root: RunRow, runs: readonly RunRow[]): void {
  const children = runs.filter(({ parent_id }) => parent_id === root.id);
  const events = world.database
    .prepare("SELECT seq, kind, data FROM run_events WHERE run_id = ? ORDER BY seq")
    .all(root.id) as EventRow[];
  for (const [index, { seq }] of events.entries())
    if (seq !== index + 1)
      return world.problem(`journal: event ${index + 1} of ${root.id} has number ${seq}`);
  if (root.last_seq !== events.length)
    world.problem(`journal: ${root.id} counts ${root.last_seq} of ${events.length}`);
  const of = (kind: string): EventRow[] => events.filter((event) => event.kind === kind);
  const calls = (kind: string, tool?: string): string[] =>
    of(kind).flatMap(({ data }) => {
      const call = JSON.parse(data) as { callId: string; tool?: string };
      return tool === undefined || call.tool === tool ? [call.callId] : [];
    });
  // A call without an effect outside may run again after a crash.
  const [begun, ended] = [calls("tool_started", "act"), calls("tool_finished", "act")];
  if (new Set(begun).size !== begun.length) world.problem(`journal: a call of ${root.id} begins twice`);
  if (new Set(ended).size !== ended.length) world.problem(`journal: a call of ${root.id} ends twice`);
  // A rejected call ends and never runs.
  const rejected = of("tool_finished").flatMap(({ data }) => {
    const call = JSON.parse(data) as { callId: string; rejected?: true };
    return call.rejected ? [call.callId] : [];
  });
  for (const callId of ended)
    if (!begun.includes(callId) && !rejected.includes(callId))
      world.problem(`journal: ${callId} ends and never began`);
  // A limit cancels background agents in the middle of their calls.
  if (root.status === "completed" && root.stop_reason === null)
    for (const callId of begun)
      if (!ended.includes(callId)) world.problem(`journal: ${callId} began and has no end`);
  for (const kind of ["run_started", "run_completed", "run_failed", "run_cancelled"])
    if (of(kind).length > 1) world.problem(`journal: ${root.id} has ${of(kind).length} events ${kind}`);
  const resumed = of("run_resumed").length;
  checkUse(world, root, { children, replies: of("model_called").length, resumed });
  checkChildren(world, root, { children, reports: calls("subagent_finished") });
  checkNews(world, root, events);
}

/** Each event that makes news was accepted by the receiver. One message may stand for the questions after its own. */
function checkNews(world: EndedWorld, root: RunRow, events: readonly EventRow[]): void {
  let covered = 0;
  for (const { seq, kind, data } of events) {
    for (const type of newsOf({ kind, data: JSON.parse(data) } as Parameters<typeof newsOf>[0])) {
      const questions = world.received.get(newsId(root.id, seq, type)) ?? 0;
      if (type === "question.asked") covered = Math.max(covered - 1, questions - 1);
      if (questions === 0 && (type !== "question.asked" || covered < 0))
        world.problem(`news: nobody received ${type} of event ${seq} of ${root.id}`);
    }
  }
}

function checkUse(
  world: EndedWorld,
  root: RunRow,
  { children, replies, resumed }: { children: readonly RunRow[]; replies: number; resumed: number },
): void {
  const inThreads = world.agents.tokensOf([root, ...children].map(({ id }) => id));
  if (root.tokens !== replies * REPLY_TOKENS)
    world.problem(
      `use: the row of ${root.id} has ${root.tokens} tokens, its journal ${replies * REPLY_TOKENS}`,
    );
  if (inThreads > root.tokens)
    world.problem(`use: the threads of ${root.id} have ${inThreads} tokens, its row ${root.tokens}`);
  // These agents ask again for a reply that their thread lost with a server.
  const most = world.tokenLimit + REPLY_TOKENS * (1 + children.length + resumed);
  if (root.tokens > most) world.problem(`limit: ${root.id} used ${root.tokens} tokens, at most ${most}`);
}

function checkChildren(
  world: EndedWorld,
  root: RunRow,
  { children, reports }: { children: readonly RunRow[]; reports: readonly string[] },
): void {
  if (new Set(reports).size !== reports.length)
    world.problem(`children: a report is in the journal of ${root.id} twice`);
  if (!FINAL.includes(root.status)) return;
  for (const { id, status } of children) {
    if (!FINAL.includes(status)) world.problem(`children: ${id} is ${status}, and ${root.id} has ended`);
    // An agent that a limit ends cancels its background agents without their reports.
    if (root.status === "completed" && root.stop_reason === null && !reports.includes(id))
      world.problem(`children: ${id} has no report in the journal`);
  }
  if (root.status !== "completed") return;
  const from = world.agents
    .messages()
    .flatMap((message) => (message.runId === root.id ? (message.from ?? []) : []));
  if (new Set(from).size !== from.length) world.problem(`children: ${root.id} read a report twice`);
}

/** A confirmed message is in the thread once, unless its run ended otherwise than by completing. */
function checkMessages(world: EndedWorld, people: People, runs: readonly RunRow[]): void {
  const texts = world.agents.messages().map(({ text }) => text);
  for (const [text, runId] of people.told) {
    const times = texts.filter((one) => one === text).length;
    const { status } = runs.find(({ id }) => id === runId) ?? { status: "unknown" };
    if (times > 1) world.problem(`message-once: ${text} was read ${times} times`);
    if (times === 0 && status === "completed")
      world.problem(`message-once: ${text} was confirmed and never read`);
  }
  for (const [task, runId] of people.started) {
    const row = runs.find(({ id }) => id === runId);
    if (row === undefined) world.problem(`start-once: ${task} was confirmed and does not exist`);
    else if (row.status === "cancelled" && !people.cancelled.has(runId))
      world.problem(`start-once: ${task} was cancelled by nobody`);
  }
  for (const runId of people.cancelled)
    if (runs.find(({ id }) => id === runId)?.status !== "cancelled")
      world.problem(`cancel: ${runId} was confirmed as cancelled and is not`);
}

/** The calls about each conversation agree with an order in which each takes place at once. */
function checkOrder(world: EndedWorld, calls: readonly PersonCall[], runs: readonly RunRow[]): void {
  const asked = world.database.prepare("SELECT id, status, decision FROM questions").all() as {
    id: string;
    status: string;
    decision: string | null;
  }[];
  const answers = new Map(
    asked.map(({ id, status, decision }) => [
      id,
      status === "withdrawn" ? undefined : (decision ?? undefined),
    ]),
  );
  const roots = runs.filter(({ parent_id }) => parent_id === null);
  for (const threadId of new Set(roots.map(({ thread_id }) => thread_id))) {
    const inThread = runs.filter(({ thread_id }) => thread_id === threadId);
    const ids = inThread.map(({ id }) => id);
    const own = calls.filter(({ operation }) => ids.includes(operation.runId));
    const stored = { runs: inThread.map((run) => ({ ...run, key: run.idempotency_key })), answers };
    const { calls: all, model } = conversation(own, stored);
    if (!isLinearizable(all, model))
      world.problem(
        `order: no order of the calls about ${threadId} explains ${JSON.stringify(all)}; stored: ${JSON.stringify([...answers])}`,
      );
  }
}

/** Each due time has one run, or is among those that were skipped. */
function checkSchedules(world: EndedWorld, people: People, runs: readonly RunRow[]): void {
  for (const [id, { from, to }] of people.schedules) {
    const skips = world.database
      .prepare("SELECT due_at AS first, last_due_at AS last FROM schedule_skips WHERE schedule_id = ?")
      .all(id) as { first: number; last: number }[];
    const started = runs.filter(({ schedule_id }) => schedule_id === id).map(({ occurrence }) => occurrence);
    for (let due = Math.ceil(from / MINUTE) * MINUTE; due < to; due += MINUTE) {
      const times = started.filter((occurrence) => occurrence === due).length;
      const skipped = skips.filter(({ first, last }) => first <= due && due <= last).length;
      if (times + skipped !== 1)
        world.problem(`schedule-once: ${due} of ${id} has ${times} runs and ${skipped} skips`);
    }
  }
}
