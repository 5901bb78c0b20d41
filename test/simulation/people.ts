/** Carries out a plan: people and clients who call the servers, and faults. Notes all that was confirmed to them. */
import { errorMessage } from "../../src/core/errors.ts";
import { hasConflict } from "../../src/runs/proposals.ts";
import type { Run } from "../../src/runs/run.ts";
import type { LaterReviewOutcome, PrincipalRuns } from "../../src/runs/service.ts";
import type { PersonAnswer, ReviewChoice } from "../../src/tools/request.ts";
import type { Operation, PersonCall } from "./conversation.ts";
import { type Disturbed, disturb } from "./faults.ts";
import type { Act, Plan, Planned } from "./plan.ts";
import { generator, inPlace, later, worldTime } from "./virtual-machine.ts";

/** Time after which a client gives a call up and does not know its outcome, in milliseconds. */
const PATIENCE_MS = 20_000;
/** By how much the run of a due time may be late when its schedule is paused, in milliseconds. */
const LATE_MS = 45_000;
const OWNER = "local";

/** A call that changes a conversation. */
interface Noted<T> {
  operation: Operation;
  work: (runs: PrincipalRuns) => Promise<T>;
  /** In the words of the model. */
  outcomeOf: (answer: T) => string;
}

const NO_CHANGE = { files: [] };

function appliedOutcome(outcome: LaterReviewOutcome): string {
  if (!outcome.ok) return outcome.message.startsWith("Another process") ? "busy" : outcome.code;
  const { applied, partly, unapplied } = outcome.record;
  if (applied.length + partly.length === 0) return "applied nothing";
  return unapplied === 0 ? "applied all" : "applied some";
}

export class People {
  readonly #world: Disturbed;
  readonly #draw: () => number;
  /** IDs of the started runs, by task. */
  readonly started = new Map<string, string>();
  /** Messages that were confirmed for an open run, by their text. */
  readonly told = new Map<string, string>();
  readonly cancelled = new Set<string>();
  /** Threads of the started runs. */
  readonly #threads = new Map<string, string>();
  /** Calls that change a conversation, with their outcomes. */
  readonly calls: PersonCall[] = [];
  /** Between which times each due time has a run or is skipped, by the ID of the schedule. */
  readonly schedules = new Map<string, { from: number; to: number }>();
  /** By how much the clocks of two servers may differ, in milliseconds. */
  #driftMs = 0;
  /** Acts that are not over. */
  #open = 0;
  #isOver = false;

  constructor(world: Disturbed, seed: number) {
    this.#world = world;
    this.#draw = generator(seed, 1);
  }

  get isDone(): boolean {
    return this.#open === 0;
  }

  /** Nobody calls a server any more. */
  stop(): void {
    this.#isOver = true;
  }

  begin({ acts }: Plan): void {
    for (const act of acts) if (act.kind === "clock step") this.#driftMs += Math.abs(act.byMs);
    for (const act of acts) {
      const isPerson = act.kind === "person";
      if (!isPerson) this.#open += 1;
      void inPlace(undefined, async () => {
        await later(act.at);
        await this.#do(act).catch((error: unknown) =>
          this.#world.problem(`no-internal-errors: ${act.kind}: ${errorMessage(error)}`),
        );
        if (!isPerson) this.#open -= 1;
      });
    }
  }

  /** Calls a server. `undefined`: it did not answer, or failed; the call may have had its effect. */
  async #call<T>(work: (runs: PrincipalRuns) => Promise<T>): Promise<T | undefined> {
    // The process of a server may belong to another world by now.
    if (this.#isOver) return new Promise(() => {});
    const { servers } = this.#world;
    const server = servers[Math.floor(this.#draw() * servers.length)];
    if (server === undefined) return later(500).then(() => undefined);
    const answer = inPlace(server.place, () => work(server.service.as({ principal: OWNER })));
    return Promise.race([answer.catch(() => undefined), later(PATIENCE_MS).then(() => undefined)]);
  }

  /** Calls a server, and notes what became of it. */
  async #noted<T>({ operation, work, outcomeOf }: Noted<T>): Promise<T | undefined> {
    const beganAt = worldTime();
    const answer = await this.#call(work);
    const known = answer === undefined ? {} : { outcome: outcomeOf(answer) };
    this.calls.push({ operation, beganAt, endedAt: worldTime(), ...known });
    return answer;
  }

  /** Calls until there is an answer, as a client with an idempotency key does. */
  async #insist<T>(work: ((runs: PrincipalRuns) => Promise<T>) | Noted<T>): Promise<T> {
    for (;;) {
      const answer = await (typeof work === "function" ? this.#call(work) : this.#noted(work));
      if (answer !== undefined) return answer;
      await later(200 + this.#draw() * 2000);
    }
  }

  async #do(act: Planned): Promise<void> {
    switch (act.kind) {
      case "start": {
        const start = async (): Promise<void> => {
          const proposes = act.task.startsWith("propose") ? ({ changes: "propose" } as const) : {};
          const request = { task: act.task, idempotencyKey: act.task, ...proposes };
          const outcome = await this.#insist((runs) => runs.control.start(request));
          if (!outcome.ok)
            return this.#world.problem(`start-once: ${act.task} was refused: ${outcome.message}`);
          const known = this.started.get(act.task);
          if (known !== undefined && known !== outcome.run.id)
            this.#world.problem(`start-once: ${act.task} is ${known} and ${outcome.run.id}`);
          this.#notedStart(act.task, outcome.run);
        };
        await Promise.all(act.twice ? [start(), start()] : [start()]);
        return;
      }
      case "person":
        while (!this.#isOver) {
          await later(this.#draw() * act.everyMs * 2);
          await this.#answerOne(act);
        }
        return;
      case "tell": {
        const runId = await this.#runOf(act.run);
        const outcome = await this.#insist({
          operation: { kind: "tell", runId, key: act.text },
          work: (runs) => runs.control.tell(runId, { text: act.text, idempotencyKey: act.text }),
          outcomeOf: (told) => (told.ok ? (told.repeated ? "repeated" : "sent") : told.code),
        });
        if (outcome.ok) this.told.set(act.text, runId);
        return;
      }
      case "cancel": {
        const runId = await this.#runOf(act.run);
        const outcome = await this.#insist({
          operation: { kind: "cancel", runId },
          work: (runs) => runs.control.cancel(runId, "not needed"),
          outcomeOf: (one) =>
            one.ok ? (one.alreadyEnded ? `ended: ${one.run.status}` : "cancelled") : one.code,
        });
        // The answer to the first call may be lost.
        if (outcome.ok && outcome.run.status === "cancelled") this.cancelled.add(runId);
        return;
      }
      case "continue":
        return this.#continue(act);
      case "apply":
        return this.#apply(await this.#runOf(act.run));
      case "schedule":
        return this.#keepSchedule(act);
      case "edit":
        return this.#world.workspace.edit(this.#draw, act.text);
      default:
        return disturb(this.#world, act, this.#draw);
    }
  }

  #notedStart(task: string, { id, threadId }: Run): void {
    this.started.set(task, id);
    this.#threads.set(id, threadId);
  }

  /** Starts a run in the thread of another one, or sends a message to the one that works there. */
  async #continue({ run, task }: Extract<Act, { kind: "continue" }>): Promise<void> {
    const runId = await this.#runOf(run);
    const threadId = this.#threads.get(runId) ?? "";
    const proposes = task.startsWith("propose") ? ({ changes: "propose" } as const) : {};
    const outcome = await this.#insist({
      operation: { kind: "continue", runId, key: task },
      work: (runs) => runs.control.start({ task, threadId, idempotencyKey: task, ...proposes }),
      outcomeOf: (one) => (one.ok ? one.how : one.code),
    });
    if (!outcome.ok) this.#world.problem(`start-once: ${task} was refused: ${outcome.message}`);
    else if (outcome.run.task === task) this.#notedStart(task, outcome.run);
    else this.told.set(task, outcome.run.id);
  }

  /** Applies some of what a run proposed, once it has ended. */
  async #apply(runId: string): Promise<void> {
    for (;;) {
      const change = await this.#insist(async (runs) => (await runs.changes.proposed(runId)) ?? NO_CHANGE);
      const files = change.files.map((file) => ({
        path: file.path,
        ...(hasConflict(file) ? { conflict: true as const } : {}),
      }));
      const choice = this.#choiceOf(files);
      const outcome = await this.#insist({
        operation: { kind: "apply", runId },
        work: (runs) => runs.changes.review(runId, choice, "Cleo"),
        outcomeOf: appliedOutcome,
      });
      if (outcome.ok || outcome.code !== "open") return;
      await later(2000 + this.#draw() * 4000);
    }
  }

  async #runOf(index: number): Promise<string> {
    for (;;) {
      const id = [...this.started.values()][index] ?? [...this.started.values()][0];
      if (id !== undefined) return id;
      await later(500);
    }
  }

  async #answerOne({ name, rejects }: Extract<Act, { kind: "person" }>): Promise<void> {
    const pending = (await this.#call((runs) => runs.read.pending(20))) ?? [];
    const request = pending[Math.floor(this.#draw() * pending.length)];
    if (request === undefined) return;
    const { runId, id } = request;
    const answer: PersonAnswer =
      request.kind === "review"
        ? { type: "review", choice: this.#choiceOf(request.files) }
        : request.kind === "approval"
          ? this.#draw() < rejects
            ? { type: "reject" }
            : { type: "approve" }
          : { type: "fields", values: { answer: `${name} says ${Math.floor(this.#draw() * 3)}` } };
    await this.#noted({
      operation: { kind: "answer", runId, requestId: id, given: JSON.stringify(answer) },
      work: (runs) => runs.requests.answer(runId, { requestId: id, answer }, name),
      outcomeOf: (outcome) => (outcome.ok ? outcome.how : outcome.code),
    });
  }

  /** All of a change, some files of it, or nothing. */
  #choiceOf(files: readonly { path: string; conflict?: true }[]): ReviewChoice {
    const share = this.#draw();
    const chosen = files.filter(({ conflict }) => conflict !== true && (share < 0.5 || this.#draw() < 0.4));
    return { apply: Object.fromEntries(chosen.map(({ path }) => [path, "all" as const])) };
  }

  async #keepSchedule({ task, forMs }: Extract<Act, { kind: "schedule" }>): Promise<void> {
    const request = {
      task,
      name: task,
      expression: "* * * * *",
      timeZone: "UTC",
      catchUp: "all",
      overlap: true,
    } as const;
    const added = await this.#insist((runs) => runs.schedules.add(request));
    // A full disk may have refused it several times, so it is as old as its last attempt.
    const from = worldTime() + this.#driftMs;
    // Its answer may be lost; then the name is taken.
    const id = added.ok
      ? added.schedule.id
      : (await this.#insist((runs) => runs.schedules.list())).find(({ name }) => name === task)?.id;
    if (id === undefined) return this.#world.problem(`schedule-once: ${task} was not added`);
    await later(forMs);
    await this.#insist((runs) => runs.schedules.pause(id));
    this.schedules.set(id, { from, to: worldTime() - this.#driftMs - LATE_MS });
  }
}
