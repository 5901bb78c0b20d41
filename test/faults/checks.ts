import { readFileSync } from "node:fs";
import type { Cluster } from "./cluster.ts";
import type { Promised, ToldEvent } from "./person.ts";
import { endingIn } from "./script.ts";

/** Events that are on the disk before anybody can read them; of the others, the newest may go with a crash of Postgres. */
const DURABLE = /^(run_started|run_completed|approval_requested|approval_decided|message)/;

interface StoredEvent {
  seq: number;
  kind: string;
  time: string;
  data: string;
}

/** What is wrong with what is stored and was done, in view of what was promised. */
export async function checkPromises(
  cluster: Cluster,
  promised: ReadonlyMap<string, Promised>,
): Promise<{ complaints: string[]; events: number; toldAgain: number }> {
  const complaints = [...(await checkTables(cluster)), ...checkEffects(cluster, promised)];
  let events = 0;
  let toldAgain = 0;
  for (const promise of promised.values()) {
    const { complaints: found, again } = await checkRun(cluster, promise);
    complaints.push(...found);
    events += promise.journal.length;
    toldAgain += again;
  }
  return { complaints, events, toldAgain };
}

/** What must never be in the tables, whatever was promised. */
async function checkTables(cluster: Cluster): Promise<string[]> {
  const none: Record<string, string> = {
    "journals with a gap or a number twice": `SELECT r.id FROM runs r LEFT JOIN run_events e ON e.run_id = r.id
      GROUP BY r.id, r.last_seq HAVING count(e.seq) <> r.last_seq OR max(e.seq) <> r.last_seq`,
    "starts, ends and decisions that a journal has twice": `SELECT run_id, kind FROM run_events
      WHERE kind IN ('approval_requested', 'approval_decided', 'run_started', 'run_completed')
      GROUP BY run_id, kind, data::json ->> 'approvalId' HAVING count(*) > 1`,
    "runs that are not over": "SELECT id, status FROM runs WHERE ended_at IS NULL",
    "runs that did not end well":
      "SELECT id, failure_message FROM runs WHERE status IN ('failed', 'cancelled')",
    "keys with two runs": `SELECT idempotency_key FROM runs WHERE idempotency_key IS NOT NULL
      GROUP BY 1 HAVING count(*) > 1`,
    "leases of runs that are over":
      "SELECT id FROM runs WHERE ended_at IS NOT NULL AND lease_owner IS NOT NULL",
  };
  const complaints: string[] = [];
  for (const [name, sql] of Object.entries(none)) {
    const rows = await cluster.query(sql);
    if (rows.length > 0) complaints.push(`${name}: ${JSON.stringify(rows.slice(0, 3))} (${rows.length})`);
  }
  return complaints;
}

/** Each call left its line at most once, and exactly if it was told so. */
function checkEffects({ effects }: Cluster, promised: ReadonlyMap<string, Promised>): string[] {
  const lines = readFileSync(effects, "utf8").split("\n").filter(Boolean);
  const times = new Map<string, number>();
  for (const line of lines) times.set(line, (times.get(line) ?? 0) + 1);
  const complaints: string[] = [];
  for (const [line, count] of times) {
    const ending = promised.get(line.split(" ")[0] ?? "")?.ending;
    if (count > 1) complaints.push(`${line}: took effect ${count} times`);
    if (ending !== undefined && ending.lines[line] === undefined) complaints.push(`${line}: nobody was told`);
    if (ending?.lines[line] === "rejected") complaints.push(`${line}: took effect and was rejected`);
  }
  for (const { ending } of promised.values()) {
    for (const [line, outcome] of Object.entries(ending?.lines ?? {})) {
      if (outcome === "done" && !times.has(line)) complaints.push(`${line}: did not take effect`);
    }
  }
  return complaints;
}

async function checkRun(
  cluster: Cluster,
  { story, runId, decisions, messages, journal, ending }: Promised,
): Promise<{ complaints: string[]; again: number }> {
  const complaints: string[] = [];
  const runs = await cluster.query<{ id: string; task: string; answer: string | null }>(
    "SELECT id, task, answer FROM runs WHERE id = $1 AND idempotency_key = $2",
    [runId, story],
  );
  if (runs.length !== 1) complaints.push(`${story}: the run ${runId} is not there`);
  if (ending === undefined) return { complaints, again: 0 };
  if (ending.story !== story) complaints.push(`${story}: has the answer of ${ending.story}`);
  if (ending.odd.length > 0) complaints.push(`${story}: tools answered ${JSON.stringify(ending.odd)}`);
  const asked = Object.entries(ending.lines).find(([line]) => line.endsWith(" asked"))?.[1];
  const expected = [...decisions.values()].map((decision) =>
    decision === "approve" ? ["done", "unknown"] : ["rejected"],
  );
  if (expected.some((outcomes) => !outcomes.includes(asked ?? ""))) {
    complaints.push(`${story}: decided ${[...decisions.values()].join()}, and it was ${asked}`);
  }
  for (const [approval, decision] of decisions) {
    const stored = await cluster.query<{ status: string }>(
      "SELECT status FROM questions WHERE run_id = $1 AND id = $2",
      [runId, approval],
    );
    const status = decision === "approve" ? "approved" : "rejected";
    if (stored[0]?.status !== status)
      complaints.push(`${story}: ${approval} is ${stored[0]?.status}, not ${status}`);
  }
  for (const message of messages) {
    // It may have begun a run, or have come to one that another message began.
    const [run] = await cluster.query<{ answer: string | null }>("SELECT answer FROM runs WHERE id = $1", [
      message.runId,
    ]);
    const { told } = endingIn(run?.answer ?? "") ?? {};
    if (told?.includes(message.name) !== true) {
      complaints.push(`${story}: the message ${message.name} to ${message.runId} is lost: ${run?.answer}`);
    }
  }
  return checkJournal(cluster, { runId, journal }, complaints);
}

async function checkJournal(
  cluster: Cluster,
  { runId, journal }: Pick<Promised, "runId" | "journal">,
  complaints: string[],
): Promise<{ complaints: string[]; again: number }> {
  const stored = await cluster.query<StoredEvent>(
    "SELECT seq, kind, time, data FROM run_events WHERE run_id = $1 ORDER BY seq",
    [runId],
  );
  const isSame = (told: ToldEvent, there: StoredEvent | undefined): boolean =>
    there?.kind === told.kind && new Date(Number(there.time)).getTime() === new Date(told.time).getTime();
  const lost = journal.filter((told) => !isSame(told, stored[told.seq - 1]));
  for (const { seq, kind } of lost) {
    if (DURABLE.test(kind)) complaints.push(`${runId}: the event ${seq} (${kind}) is lost`);
  }
  return { complaints, again: lost.length };
}
