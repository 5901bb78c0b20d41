import { isApproval } from "../../src/runs/run.ts";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { RunEvent } from "../../src/runs/events.ts";
import type { Approval, Run, RunStatus, RunView } from "../../src/runs/run.ts";
import type { StartRequest } from "../../src/runs/ports.ts";
import type {
  CancelOutcome,
  AnswerOutcome,
  RunPoint,
  StartOutcome,
  TellOutcome,
} from "../../src/runs/service.ts";
import { decisionOn, type Promised } from "./checks.ts";
import type { Fleet } from "./fleet.ts";
import { besides } from "./script.ts";

/**
 * Has work done by whatever servers are there, until they have acknowledged it. Each piece of work is a story:
 * a run that is told something while it works, once by a message and once by a follow-up, a follow-up in its thread, a run that begins at a point of that
 * thread, and one that is cancelled.
 */
export class Person {
  readonly promised: Promised = { runs: new Map(), decisions: new Map(), journals: new Map() };
  readonly #fleet: Fleet;
  readonly #told = new Set<string>();
  readonly #points = new Map<string, string>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** Attends to the stories until they have all ended, or it is time to stop. */
  async work(stories: readonly string[], until = Number.POSITIVE_INFINITY): Promise<boolean> {
    while (Date.now() < until) {
      this.#fleet.throwIfClosed();
      const ended = await Promise.all(stories.map((story) => this.#attend(story)));
      if (ended.every(Boolean)) return true;
      await delay(10);
    }
    return false;
  }

  /** Whether the story has ended. */
  async #attend(story: string): Promise<boolean> {
    const [main, stop] = await Promise.all([
      this.#run(story, () => ({ task: `main ${story}` })),
      this.#run(`${story}-stop`, () => ({ task: `stop ${story}-stop` })),
    ]);
    if (main === undefined || !(await this.#goesOn(story, main.run))) return false;
    if (main.run.status !== "completed") return false;
    const { threadId, id } = main.run;
    const [more, fork] = await Promise.all([
      this.#run(`${story}-more`, () => ({ task: `more ${story}`, threadId })),
      this.#run(`${story}-fork`, async () => {
        const point = await this.#pointOf(id);
        return point === undefined ? undefined : { task: `fork ${story}`, threadId: point };
      }),
    ]);
    return [main, stop, more, fork].every((view) => view?.run.endedAt !== undefined);
  }

  /** A follow-up while the run may be at work: it is told, or there is another run. True once that is settled. */
  async #goesOn(story: string, { id, threadId }: Run): Promise<boolean> {
    const key = `${story}-meanwhile`;
    if (this.#told.has(key)) return true;
    const { runs } = this.promised;
    if (!runs.has(key)) {
      const task = besides(story, "meanwhile");
      const request = { task, threadId, idempotencyKey: key };
      const started = await this.#ask<StartOutcome>({ method: "start", request });
      if (started === undefined || (!started.ok && started.code === "shutting_down")) return false;
      if (!started.ok) throw new Error(started.message);
      if (started.run.id === id) {
        this.#told.add(key);
        return true;
      }
      const answer = `main ${story} is done`;
      runs.set(key, { runId: started.run.id, task, status: "completed", answer });
    }
    const runId = runs.get(key)?.runId ?? "";
    await this.#readOn(runId);
    return (await this.#ask<RunView>({ method: "view", runId }))?.run.status === "completed";
  }

  /** Starts the run if nobody acknowledged it, and does what it waits for; `undefined` while nobody answers. */
  async #run(
    key: string,
    requestOf: () => StartRequest | undefined | Promise<StartRequest | undefined>,
  ): Promise<RunView | undefined> {
    const { runs } = this.promised;
    if (!runs.has(key)) {
      const request = await requestOf();
      if (request === undefined) return undefined;
      const started = await this.#ask<StartOutcome>({
        method: "start",
        request: { ...request, idempotencyKey: key },
      });
      if (started === undefined || (!started.ok && started.code === "shutting_down")) return undefined;
      if (!started.ok) throw new Error(started.message);
      const status = key.endsWith("-stop") ? "cancelled" : "completed";
      runs.set(key, { runId: started.run.id, task: request.task, status });
    }
    const { runId = "", status } = runs.get(key) ?? {};
    await this.#readOn(runId);
    const view = await this.#ask<RunView>({ method: "view", runId });
    if (view !== undefined) await this.#doWhatIsAskedFor(view, status);
    return view;
  }

  async #doWhatIsAskedFor({ run, requests }: RunView, wanted: RunStatus | undefined): Promise<void> {
    if (run.status === "failed") throw new Error(JSON.stringify(run.failure));
    if (run.endedAt !== undefined) expect(run.status).toBe(wanted);
    const pending = requests.filter(isApproval).filter(({ status }) => status === "pending");
    if (pending.length === 0) return;
    if (wanted === "cancelled") {
      const cancelled = await this.#ask<CancelOutcome>({ method: "cancel", runId: run.id });
      if (cancelled !== undefined)
        expect(cancelled).toMatchObject({ ok: true, run: { status: "cancelled" } });
      return;
    }
    if (run.task.startsWith("main ") && !(await this.#tell(run.id, besides(run.task.slice(5))))) return;
    for (const approval of pending) await this.#decide(approval);
  }

  /** Once, however often it takes. */
  async #tell(runId: string, text: string): Promise<boolean> {
    if (this.#told.has(runId)) return true;
    const told = await this.#ask<TellOutcome>({ method: "tell", runId, text, key: `besides ${runId}` });
    if (told?.ok === false) throw new Error(told.message);
    if (told !== undefined) this.#told.add(runId);
    return told !== undefined;
  }

  async #decide(approval: Approval): Promise<void> {
    const { runId, id: approvalId } = approval;
    const decision = decisionOn(approval);
    const outcome = await this.#ask<AnswerOutcome>({ method: "decide", runId, approvalId, decision });
    if (outcome === undefined) return;
    if (!outcome.ok) throw new Error(outcome.message);
    this.promised.decisions.set(`${runId} ${approvalId}`, decision.type);
    if (Math.random() < 0.3) await this.#sayAgain(approval);
  }

  /** What was decided stays: said again it changes nothing, and anything else is refused. */
  async #sayAgain(approval: Approval): Promise<void> {
    const { runId, id: approvalId } = approval;
    const before = decisionOn(approval);
    const status = { approve: "approved", edit: "edited", reject: "rejected" }[before.type];
    const isSame = Math.random() < 0.5;
    const other = { type: before.type === "reject" ? ("approve" as const) : ("reject" as const) };
    const decision = isSame ? before : other;
    const outcome = await this.#ask<AnswerOutcome>({ method: "decide", runId, approvalId, decision });
    if (outcome === undefined) return;
    const told = isSame ? { ok: true, how: "repeated" } : { ok: false, code: "already_answered" };
    expect(outcome).toMatchObject({ ...told, request: { status } });
  }

  /** The journal from where it was read to, by another server every time. */
  async #readOn(runId: string): Promise<void> {
    const known = this.promised.journals.get(runId) ?? [];
    this.promised.journals.set(runId, known);
    const more = await this.#ask<RunEvent[]>({ method: "events", runId, after: known.length });
    for (const event of more ?? []) {
      known.push(event);
      expect(event.seq).toBe(known.length);
    }
  }

  /** Always the same one: a repeated start has to name it again. */
  async #pointOf(runId: string): Promise<string | undefined> {
    const known = this.#points.get(runId);
    if (known !== undefined) return known;
    const points = await this.#ask<RunPoint[]>({ method: "points", runId });
    const point = points?.[Math.floor(points.length / 2)]?.id;
    if (point !== undefined) this.#points.set(runId, point);
    return point;
  }

  /** What servers answer has the type that the request promises. */
  async #ask<Result>(request: Parameters<Fleet["ask"]>[0]): Promise<Result | undefined> {
    return (await this.#fleet.ask(request)) as Result | undefined;
  }
}
