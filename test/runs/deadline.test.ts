import { isApproval } from "../../src/runs/run.ts";
import { expect, test } from "vitest";
import type { RunServiceOptions } from "../../src/runs/service.ts";
import {
  APPROVE,
  approve,
  calling,
  databaseFile,
  FAST,
  follow,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
  reachAsked,
} from "./support.ts";

/** A clock that a test sets. */
function handSet() {
  const time = { now: 1_000_000 };
  return { time, clock: () => time.now };
}

const MINUTE = 60_000;
/** Only what is asked of it happens: it never looks at deadlines by itself. */
const UNMOVED = { ...FAST, heartbeatMs: 1_000_000 };

async function waiting(options: Partial<RunServiceOptions>, gate: object | true = true, ...texts: string[]) {
  const notes: string[] = [];
  const calls = texts.length === 0 ? ["a"] : texts;
  const agent = {
    model: calling(...calls.map(note)),
    tools: [noteTool(notes)],
    interruptOn: { note: gate },
  };
  const file = databaseFile();
  const server = openServer(file, agent, { approvalDeadlineMs: MINUTE, ...options });
  const run = await startRun(server.service, "note");
  const view = await reachAsked(server.service, run.id, calls.length);
  return { ...server, file, agent, notes, runId: run.id, id: view.requests.filter(isApproval)[0]?.id ?? "" };
}

test("what nobody decides in time is denied, the model is told, and the run goes on", async () => {
  const { time, clock } = handSet();
  const { service, runId, notes } = await waiting({ clock }, true, "a", "b");
  const asked = await mine(service).read.view(runId);
  expect(asked?.requests.filter(isApproval)).toMatchObject([
    { expiresAt: time.now + MINUTE },
    { expiresAt: time.now + MINUTE },
  ]);
  await approve(service, runId, "b");
  time.now += MINUTE;
  const { run, requests } = await reach(service, runId, "completed");
  const approvals = requests.filter(isApproval);
  expect(notes).toEqual(["b"]);
  expect(run.answer).toMatch(/^Not run: the deadline .* passed, so the call was denied\..*; noted b$/);
  expect(approvals).toMatchObject([{ status: "rejected", decidedBy: "deadline" }, { status: "approved" }]);
  const events = await follow(service, runId);
  const [denied] = events.filter(({ kind, data }) => kind === "approval_decided" && data.by === "deadline");
  expect(denied).toMatchObject({ kind: "approval_decided", data: { decision: "reject", tool: "note" } });
});

test.each(["approve", "edit"] as const)("a late %s is not used, and is told why", async (type) => {
  const { time, clock } = handSet();
  const { service, runId, id, notes } = await waiting({ clock, timing: UNMOVED });
  time.now += MINUTE;
  const late = type === "approve" ? APPROVE : { type, editedAction: { name: "note", args: { text: "b" } } };
  const outcome = await mine(service).requests.answer(runId, { requestId: id, answer: late }, "person");
  expect(outcome).toMatchObject({
    ok: false,
    code: "already_answered",
    message: expect.stringMatching(/^Too late: nobody decided by /),
    request: { status: "rejected", decidedBy: "deadline" },
  });
  await reach(service, runId, "completed");
  expect(notes).toEqual([]);
});

test("an answer of the last moment counts, and the deadline does not undo it", async () => {
  const { time, clock } = handSet();
  const { service, runId, id, notes } = await waiting({ clock });
  time.now += MINUTE - 1;
  await mine(service).requests.answer(runId, { requestId: id, answer: APPROVE }, "person");
  time.now += MINUTE;
  const approvals = (await reach(service, runId, "completed")).requests.filter(isApproval);
  expect(approvals).toMatchObject([{ status: "approved", decidedBy: "person" }]);
  expect(notes).toEqual(["a"]);
});

test("a restart does not put the deadline off, and the next server needs no setting for it", async () => {
  const { time, clock } = handSet();
  const first = await waiting({ clock, timing: UNMOVED });
  first.kill();
  time.now += MINUTE;
  const next = openServer(first.file, first.agent, { clock });
  const { run, requests } = await reach(next.service, first.runId, "completed");
  const approvals = requests.filter(isApproval);
  expect(approvals).toMatchObject([{ status: "rejected", decidedBy: "deadline" }]);
  expect(run.answer).toContain("deadline");
  expect(first.notes).toEqual([]);
});

test("a clock that is set back only makes it wait longer", async () => {
  const { time, clock } = handSet();
  const { service, runId, id, notes } = await waiting({ clock });
  time.now -= 10 * MINUTE;
  await mine(service).requests.answer(runId, { requestId: id, answer: APPROVE }, "person");
  await reach(service, runId, "completed");
  expect(notes).toEqual(["a"]);
});

test("the deadline denies even where a person may only approve", async () => {
  const { time, clock } = handSet();
  const { service, runId, notes } = await waiting({ clock }, { allowedDecisions: ["approve"] });
  time.now += MINUTE;
  expect((await reach(service, runId, "completed")).requests.filter(isApproval)).toMatchObject([
    { status: "rejected" },
  ]);
  expect(notes).toEqual([]);
});

test("without a deadline an approval waits", async () => {
  const { time, clock } = handSet();
  const notes: string[] = [];
  const agent = { model: calling(note("a")), tools: [noteTool(notes)], interruptOn: { note: true } };
  const { service } = openServer(databaseFile(), agent, { clock });
  const run = await startRun(service, "note");
  await reach(service, run.id, "input_required");
  time.now += 400 * 24 * 60 * MINUTE;
  await approve(service, run.id, "a");
  await reach(service, run.id, "completed");
  expect(notes).toEqual(["a"]);
});
