import { isApproval } from "../../src/runs/run.ts";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Approval, RunView } from "../../src/runs/run.ts";
import type { CancelOutcome, AnswerOutcome, StartOutcome, TellOutcome } from "../../src/runs/service.ts";
import { CHECKPOINT_MIGRATIONS } from "../../src/storage/sqlite/checkpoints/schema.ts";
import { integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import { decisionOn, newFolder } from "./checks.ts";
import { serverProgram, ServerProcess } from "./process.ts";
import { idsOf } from "./script.ts";
import { afterPowerCut, readTrace, syncedUntil, traced, type TracedEvent } from "./trace.ts";

const DATABASES = ["deepagent.db", "deepagent.db-wal", "checkpoints.db", "checkpoints.db-wal"];
/** Power cuts at random moments, and as many right after answers. */
const CUTS = Number(process.env["DEEPAGENT_CRASH_SECONDS"] ?? 5);
/** Of all of them, those after which a server is started and brings the runs to their end. */
const RECOVERED = 8;

interface Said {
  result?: Partial<StartOutcome & TellOutcome & CancelOutcome & AnswerOutcome & RunView>;
}

/** A run with a follow-up, and one that is cancelled; nothing they do needs anything outside the databases. */
async function live(server: ServerProcess): Promise<void> {
  const start = async (request: object) => {
    const started = (await server.ask({
      method: "start",
      request: { task: "", idempotencyKey: JSON.stringify(request), ...request },
    })) as StartOutcome;
    if (!started.ok) throw new Error(started.message);
    return started.run;
  };
  const [first, cancelled] = await Promise.all([start({ task: "quiet a" }), start({ task: "stop b" })]);
  await server.ask({ method: "tell", runId: first.id, text: "also a", key: "one" });
  await untilAsked(server, cancelled.id);
  await server.ask({ method: "cancel", runId: cancelled.id });
  await bringToEnd(server, first.id);
  await bringToEnd(server, (await start({ task: "quiet c", threadId: first.threadId })).id);
}

async function untilAsked(server: ServerProcess, runId: string): Promise<RunView> {
  for (;;) {
    const view = (await server.ask({ method: "view", runId })) as RunView;
    if (
      view.run.endedAt !== undefined ||
      view.requests.filter(isApproval).some(({ status }) => status === "pending")
    )
      return view;
    await delay(20);
  }
}

async function bringToEnd(server: ServerProcess, runId: string): Promise<RunView> {
  for (;;) {
    const view = await untilAsked(server, runId);
    if (view.run.endedAt !== undefined) return view;
    for (const approval of view.requests.filter(isApproval).filter(({ status }) => status === "pending")) {
      const decision = decisionOn(approval);
      await server.ask({ method: "decide", runId, approvalId: approval.id, decision });
    }
  }
}

/** What the server said about runs and approvals is what the files hold; gives the runs. */
function checkImage(folder: string, events: readonly TracedEvent[]): string[] {
  const database = openDatabase(join(folder, "deepagent.db"));
  const checkpoints = openDatabase(join(folder, "checkpoints.db"), { synchronous: "NORMAL" });
  expect([integrityProblems(database), integrityProblems(checkpoints)]).toEqual([[], []]);
  // Its tables may be lost as long as there is nothing in them.
  migrate(checkpoints, "checkpoints", CHECKPOINT_MIGRATIONS);
  const statusOf = database.prepare<[string], string>("SELECT status FROM runs WHERE id = ?").pluck();
  const messages = database.prepare("SELECT count(*) FROM run_messages WHERE run_id = ?").pluck();
  const approvalOf = database
    .prepare<[string, string], string>("SELECT status FROM questions WHERE run_id = ? AND id = ?")
    .pluck();
  const threads = checkpoints.prepare("SELECT count(*) FROM checkpoints WHERE thread_id = ?").pluck();
  // An agent that is to go on has what it goes on from.
  const begun = database.prepare("SELECT thread_id FROM runs WHERE input_handed_over = 1").pluck().all();
  for (const threadId of begun) expect(threads.get(String(threadId))).toBeGreaterThan(0);
  const runs = new Set<string>();
  const expectKept = ({ runId, id, status }: Approval): void => {
    const kept = approvalOf.get(runId, id);
    if (status === "pending") expect(kept).toBeDefined();
    else expect(kept).toBe(status);
  };
  for (const event of events) {
    if (event.kind !== "said") continue;
    for (const line of event.text.trimEnd().split("\n")) {
      const { result } = JSON.parse(line) as Said;
      const { run, request, requests = [], repeated } = result ?? {};
      const approvals = requests.filter(isApproval);
      if (request?.kind === "approval") expectKept(request);
      approvals.forEach(expectKept);
      // Whoever is asked is asked by an agent whose thread is there.
      if (run !== undefined && approvals.length > 0) expect(threads.get(run.threadId)).toBeGreaterThan(0);
      if (run === undefined) continue;
      runs.add(run.id);
      const status = statusOf.get(run.id);
      expect(status).toBeDefined();
      if (run.endedAt !== undefined) expect(status).toBe(run.status);
      if (repeated !== undefined) expect(messages.get(run.id)).toBe(1);
    }
  }
  database.close();
  checkpoints.close();
  return [...runs];
}

/** Before the file of a leaf is put in place, the call and its intent are on the disk; gives the number of files. */
function expectIntentsFirst(events: readonly TracedEvent[]): number {
  const puts = events.flatMap((event, index) =>
    event.kind === "put" && event.file.endsWith(".md") ? [index] : [],
  );
  for (const [number, put] of puts.entries()) {
    const path = `/workspace/${["a", "c"][number] ?? ""}/leaf-quiet.md`;
    const { act } = idsOf({ name: `write ${path}` });
    const isSynced = (log: string, text: string): void => {
      const before = events.slice(0, put);
      const written = before.findIndex(
        (event) => event.kind === "write" && event.file === log && event.data.includes(text),
      );
      expect(written).toBeGreaterThanOrEqual(0);
      expect(syncedUntil(before, log)).toBeGreaterThan(written);
    };
    isSynced("checkpoints.db-wal", path);
    isSynced("deepagent.db-wal", `${act}0"]write_file`);
  }
  return puts.length;
}

test(
  "what was said is on the disk before it is said, whatever of the rest a power cut leaves",
  { tags: ["strace", "long"], timeout: CUTS * 20_000 + 300_000 },
  async () => {
    const script = await serverProgram();
    const folder = newFolder();
    const trace = join(newFolder(), "trace");
    const server = new ServerProcess(script, traced(trace));
    onTestFinished(() => server.leave());
    await server.ready;
    await server.ask({ method: "open", folder });
    await live(server);
    await server.leave();

    const events = readTrace(trace);
    expect(expectIntentsFirst(events)).toBe(2);
    const [, opened = 0, ...answers] = events.flatMap(({ kind }, index) =>
      kind === "said" ? [index + 1] : [],
    );
    const random = (below: number) => Math.floor(Math.random() * below);
    const cuts = Array.from({ length: CUTS }, () => [
      { at: answers[random(answers.length)] ?? 0, share: 0 },
      { at: opened + random(events.length - opened), share: Math.random() },
    ]).flat();
    for (const [index, { at, share }] of cuts.entries()) {
      const before = events.slice(0, at);
      const image = newFolder();
      // Right after an answer, at worst nothing is left that was not synced.
      afterPowerCut(before, DATABASES, image, () => Math.random() < share);
      const runs = checkImage(image, before);
      if (index % Math.ceil(cuts.length / RECOVERED) !== 0) continue;
      const next = new ServerProcess(script);
      onTestFinished(() => next.kill());
      await next.ready;
      await next.ask({ method: "open", folder: image });
      for (const runId of runs) {
        const { run } = await bringToEnd(next, runId);
        expect(run.status, JSON.stringify(run.failure)).toMatch(/completed|cancelled/);
      }
      await next.kill();
    }
    console.log(`${cuts.length} power cuts in ${events.length} system calls, ${answers.length} answers`);
  },
);
