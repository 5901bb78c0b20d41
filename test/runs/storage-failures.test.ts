import { isApproval } from "../../src/runs/run.ts";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { closeSync, openSync, statSync, writeSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createLogger } from "../../src/core/logger.ts";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { integrityProblems, openDatabase, type Database } from "../../src/storage/sqlite/database.ts";
import { breakable } from "../support/breaking-database.ts";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import {
  APPROVE,
  approve,
  calling,
  callingInTurn,
  cleanUpWith,
  connect,
  databaseFile,
  FAST,
  follow,
  kinds,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

interface LogLine {
  event: string;
  error?: { name: string; code?: string };
}

/** A way a file stops taking writes for a while. */
interface Trouble {
  name: string;
  code: string;
  begin(database: Database, file: string): () => void;
}

const TROUBLES: readonly Trouble[] = [
  {
    name: "a full disk",
    code: "There is no space left",
    begin(database) {
      const pages = Number(database.pragma("page_count", { simple: true }));
      database.pragma(`max_page_count = ${pages}`);
      // What is free within the file would still be used.
      return () => void database.pragma("max_page_count = 100000");
    },
  },
  {
    name: "a file that may not be written to",
    code: "cannot be written to",
    begin(database) {
      database.pragma("query_only = ON");
      return () => void database.pragma("query_only = OFF");
    },
  },
  {
    name: "a lock that another program holds",
    code: "stayed locked",
    begin(database, file) {
      database.pragma("busy_timeout = 1");
      const other = openDatabase(file);
      other.exec("BEGIN IMMEDIATE");
      return () => {
        other.exec("ROLLBACK");
        other.close();
      };
    },
  },
];

function open(extra: object = {}) {
  const file = databaseFile();
  const files = { runs: file, checkpoints: file.replace("data.", "checkpoints.") };
  const checkpoints = openDatabase(files.checkpoints, { synchronous: "NORMAL" });
  cleanUpWith(() => checkpoints.close());
  const lines: LogLine[] = [];
  const waiting = deferred();
  const log = createLogger("debug", (line) => {
    const parsed = JSON.parse(line) as LogLine;
    lines.push(parsed);
    if (parsed.event === "run.waits_for_storage") waiting.resolve();
  });
  const notes: string[] = [];
  const atWork = deferred();
  const go = deferred();
  const tools = [
    noteTool(notes, async (text) => {
      if (!text.startsWith("slow")) return;
      atWork.resolve();
      await go.promise;
    }),
  ];
  const checkpointer = createCheckpointer(checkpoints);
  const long = { name: "write_file", args: { file_path: "/long.md", content: "x".repeat(50_000) } };
  const agent = { model: callingInTurn([note("slow")], [long]), tools, checkpointer, ...extra };
  // Leases outlive the trouble; otherwise work would be broken off for their sake.
  const timing = { ...FAST, leaseMs: 60_000 };
  const server = openServer(file, agent, { checkpoints: async () => checkpointer, log, timing });
  const databases = { runs: server.database, checkpoints };
  return { ...server, files, databases, lines, waiting, notes, atWork, go };
}

describe.each(TROUBLES)("$name", ({ code, begin }) => {
  test.each(["runs", "checkpoints"] as const)("keeps a run waiting, %s: it then goes on", async (which) => {
    const { service, files, databases, lines, waiting, notes, atWork, go } = open();
    const run = await startRun(service, "work");
    await atWork.promise;
    const end = begin(databases[which], files[which]);
    go.resolve();
    await waiting.promise;
    expect((await mine(service).read.view(run.id))?.run.status).toBe("working");
    end();
    const { run: ended } = await reach(service, run.id, "completed");
    expect(ended.answer).toContain("Successfully wrote");
    expect(notes).toEqual(["slow"]);
    const events = await follow(service, run.id);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    const warnings = events.flatMap(({ kind, data }) => (kind === "warning" ? [data.message] : []));
    expect(warnings).toEqual([expect.stringContaining(code)]);
    expect(integrityProblems(databases[which])).toEqual([]);
    expect(lines.filter(({ error }) => error?.name === "SqliteError")).toEqual([]);
  });

  test("refuses what cannot be stored, and keeps what was acknowledged", async () => {
    const { service, files, databases, notes } = open({
      model: calling(note("a")),
      interruptOn: { note: true },
    });
    const run = await startRun(service, "ask");
    const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
    const [approval] = approvals;
    const end = begin(databases.runs, files.runs);
    // A page that is there may still take a short row; a long one needs another.
    const refused = { name: "StorageError", message: expect.stringContaining(code) };
    const long = { type: "reject", message: "x".repeat(100_000) } as const;
    const attempts = [
      mine(service).control.start({ task: "x".repeat(100_000) }),
      mine(service).requests.answer(run.id, { requestId: approval?.id ?? "", answer: long }, "test"),
      mine(service).control.tell(run.id, { text: "x".repeat(100_000) }),
    ];
    const outcomes = await Promise.allSettled(attempts);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ status: "rejected", reason: refused });
    expect((await mine(service).read.view(run.id))?.requests.filter(isApproval)).toEqual(approvals);
    expect(await mine(service).read.list({ limit: 9 })).toHaveLength(1);
    end();
    expect(
      await mine(service).requests.answer(run.id, { requestId: approval?.id ?? "", answer: APPROVE }, "test"),
    ).toMatchObject({
      ok: true,
    });
    await reach(service, run.id, "completed");
    expect(notes).toEqual(["a"]);
  });
});

test("a damaged file ends the run with what to do, and is not written to again", async () => {
  const { service, databases, files, atWork, go } = open();
  const run = await startRun(service, "work");
  await atWork.promise;
  databases.checkpoints.pragma("wal_checkpoint(TRUNCATE)");
  const { size } = statSync(files.checkpoints);
  const damage = openSync(files.checkpoints, "r+");
  writeSync(damage, Buffer.alloc(size - 4096, 255), 0, size - 4096, 4096);
  closeSync(damage);
  // Pages this connection has read count until somebody else writes.
  const other = openDatabase(files.checkpoints);
  other.pragma("user_version = 7");
  other.close();
  go.resolve();
  const { run: ended } = await reach(service, run.id, "failed");
  expect(ended.failure).toEqual({ reason: "storage", message: expect.stringMatching(/is damaged/) });
  expect(ended.failure?.message).not.toContain("/");
});

describe("a clock that is set", () => {
  const HOUR = 3_600_000;

  test.each([
    ["forwards", 24 * HOUR, "both servers"],
    ["backwards", -24 * HOUR, "both servers"],
    ["forwards", 24 * HOUR, "the other server"],
    ["backwards", -24 * HOUR, "the other server"],
  ])("%s by %d ms, of %s, takes no run from a server that is well", async (_, jump, whose) => {
    const file = databaseFile();
    const time = { now: 100 * HOUR };
    const clock = () => time.now;
    const behind = Date.now() - 100 * HOUR;
    const own = whose === "both servers" ? clock : () => Date.now() - behind;
    const notes: string[] = [];
    const atWork = deferred();
    const go = deferred();
    const tools = [
      noteTool(notes, async () => {
        atWork.resolve();
        await go.promise;
      }),
    ];
    const agent = { model: calling(note("a")), tools };
    const owner = openServer(file, agent, { clock: own });
    const run = await startRun(owner.service, "work");
    await atWork.promise;
    const other = openServer(file, agent, { clock });
    time.now += jump;
    // Longer than any lease, while the owner is at work.
    await delay(3 * FAST.leaseMs);
    const later = await startRun(other.service, "also");
    go.resolve();
    await Promise.all([
      reach(owner.service, run.id, "completed"),
      reach(owner.service, later.id, "completed"),
    ]);
    expect(notes).toEqual(["a", "a"]);
    expect(kinds(await follow(owner.service, run.id))).not.toContain("run_resumed");
  });

  test("backwards does not leave runs of a server that is gone for the time of the jump", async () => {
    const file = databaseFile();
    const time = { now: 100 * HOUR };
    const clock = () => time.now;
    const notes: string[] = [];
    const atWork = deferred();
    const stuck = noteTool([], () => {
      atWork.resolve();
      return new Promise(() => {});
    });
    const gone = openServer(file, { model: calling(note("a")), tools: [stuck] }, { clock });
    const run = await startRun(gone.service, "work");
    await atWork.promise;
    gone.kill();
    time.now -= 24 * HOUR;
    const next = openServer(file, { model: calling(note("a")), tools: [noteTool(notes)] }, { clock });
    await reach(next.service, run.id, "completed");
    // The call was at work when its server ended: it is not made again.
    expect(notes).toEqual([]);
  });

  test.each([24 * HOUR, -24 * HOUR])("by %d ms loses no approval and no decision", async (jump) => {
    const file = databaseFile();
    const time = { now: 100 * HOUR };
    const notes: string[] = [];
    const agent = { model: calling(note("a")), tools: [noteTool(notes)], interruptOn: { note: true } };
    const server = openServer(file, agent, { clock: () => time.now });
    const run = await startRun(server.service, "ask");
    await reach(server.service, run.id, "input_required");
    time.now += jump;
    await approve(server.service, run.id, "a");
    await reach(server.service, run.id, "completed");
    expect(notes).toEqual(["a"]);
    const seqs = (await follow(server.service, run.id)).map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    expect(connect(file).pragma("quick_check", { simple: true })).toBe("ok");
  });
});

test("a subagent whose step cannot be stored has not failed: it goes on", async () => {
  const task = { name: "task", args: { description: "look around", subagent_type: "general-purpose" } };
  const model = scriptedModel(({ messages }) => {
    const isSubagent = messages.some(({ type, text }) => type === "human" && text === "look around");
    const answer = messages.findLast(({ type }) => type === "tool");
    if (answer === undefined) return { toolCalls: [isSubagent ? note("a") : task] };
    return { text: isSubagent ? "looked around" : answer.text };
  });
  const file = databaseFile();
  const checkpoints = openDatabase(file.replace("data.", "checkpoints."), { synchronous: "NORMAL" });
  cleanUpWith(() => checkpoints.close());
  const breaking = breakable(checkpoints);
  const checkpointer = createCheckpointer(checkpoints);
  const notes: string[] = [];
  const tools = [noteTool(notes, async () => breaking.breakAt(1, "failing"))];
  const { service } = openServer(
    file,
    { model, tools, checkpointer },
    { checkpoints: async () => checkpointer },
  );
  const run = await startRun(service, "work");
  expect((await reach(service, run.id, "completed")).run.answer).toBe("looked around");
  expect(breaking.isBroken).toBe(true);
  expect(notes).toEqual(["a"]);
});

test("work on a run is broken off when its lease could not be renewed, and goes on when it can be", async () => {
  const file = databaseFile();
  const atWork = deferred();
  let stopped = 0;
  const tools = [
    noteTool([], async (_, signal) => {
      atWork.resolve();
      await once(signal ?? new EventTarget(), "abort");
      stopped += 1;
      signal?.throwIfAborted();
    }),
  ];
  const model = scriptedModel(({ messages }) =>
    messages.some(({ type }) => type === "tool") ? { text: "done" } : { toolCalls: [note("a")] },
  );
  const { service, database } = openServer(file, { model, tools });
  const run = await startRun(service, "work");
  await atWork.promise;
  // Nothing of the run waits to be stored any more.
  await follow(service, run.id, ({ kind }) => kind === "tool_started");
  database.pragma("busy_timeout = 1");
  const other = openDatabase(file);
  other.exec("BEGIN IMMEDIATE");
  await expect.poll(() => stopped).toBe(1);
  other.exec("ROLLBACK");
  other.close();
  // What the call did until then is unknown, so it is not made again.
  expect((await reach(service, run.id, "completed")).run.answer).toBe("done");
  expect(stopped).toBe(1);
});
