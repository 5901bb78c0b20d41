/** Carries out a plan: people and clients who call the servers, and faults. Notes all that was confirmed to them. */
import { errorMessage } from "../../src/core/errors.ts";
import type { PrincipalRuns } from "../../src/runs/service.ts";
import type { PersonAnswer, ReviewChoice } from "../../src/tools/request.ts";
import type { DecisionCall } from "./linearizable.ts";
import type { Act, Plan, Planned } from "./plan.ts";
import { generator, inPlace, later, worldTime } from "./virtual-machine.ts";
import type { Server, World } from "./world.ts";

/** Time after which a client gives a call up and does not know its outcome, in milliseconds. */
const PATIENCE_MS = 20_000;
const OWNER = "local";

export class People {
  readonly #world: World;
  readonly #draw: () => number;
  /** IDs of the started runs, by task. */
  readonly started = new Map<string, string>();
  /** Messages that were confirmed for an open run, by their text. */
  readonly told = new Map<string, string>();
  readonly cancelled = new Set<string>();
  readonly decisions: DecisionCall[] = [];
  /** When the schedules were removed, by their ID, in milliseconds of the world. */
  readonly schedules = new Map<string, { from: number; to: number }>();
  /** Acts that are not over. */
  #open = 0;
  #isOver = false;

  constructor(world: World, seed: number) {
    this.#world = world;
    this.#draw = generator(seed, 1);
  }

  get isDone(): boolean {
    return this.#open === 0;
  }

  /** No person answers any more. */
  stop(): void {
    this.#isOver = true;
  }

  begin({ acts }: Plan): void {
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
    const { servers } = this.#world;
    const server = servers[Math.floor(this.#draw() * servers.length)];
    if (server === undefined) return later(500).then(() => undefined);
    const answer = inPlace(server.place, () => work(server.service.as({ principal: OWNER })));
    return Promise.race([answer.catch(() => undefined), later(PATIENCE_MS).then(() => undefined)]);
  }

  /** Calls until there is an answer, as a client with an idempotency key does. */
  async #insist<T>(work: (runs: PrincipalRuns) => Promise<T>): Promise<T> {
    for (;;) {
      const answer = await this.#call(work);
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
          this.started.set(act.task, outcome.run.id);
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
        const outcome = await this.#insist((runs) =>
          runs.control.tell(runId, { text: act.text, idempotencyKey: act.text }),
        );
        if (outcome.ok) this.told.set(act.text, runId);
        return;
      }
      case "cancel": {
        const runId = await this.#runOf(act.run);
        const outcome = await this.#insist((runs) => runs.control.cancel(runId, "not needed"));
        // The answer to the first call may be lost.
        if (outcome.ok && outcome.run.status === "cancelled") this.cancelled.add(runId);
        return;
      }
      case "schedule":
        return this.#keepSchedule(act);
      case "edit":
        return this.#world.workspace.edit(this.#draw, act.text);
      default:
        return this.#disturb(act);
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
    const beganAt = worldTime();
    const outcome = await this.#call((runs) => runs.requests.answer(runId, { requestId: id, answer }, name));
    this.decisions.push({
      runId,
      requestId: id,
      given: JSON.stringify(answer),
      beganAt,
      endedAt: worldTime(),
      ...(outcome && { outcome: outcome.ok ? outcome.how : outcome.code }),
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
    const from = worldTime();
    const added = await this.#insist((runs) => runs.schedules.add(request));
    // Its answer may be lost; then the name is taken.
    const id = added.ok
      ? added.schedule.id
      : (await this.#insist((runs) => runs.schedules.list())).find(({ name }) => name === task)?.id;
    if (id === undefined) return this.#world.problem(`schedule-once: ${task} was not added`);
    await later(forMs);
    await this.#insist((runs) => runs.schedules.pause(id));
    this.schedules.set(id, { from, to: worldTime() });
  }

  async #disturb(act: Extract<Act, { forMs: number } | { byMs: number }>): Promise<void> {
    const world = this.#world;
    const until = "forMs" in act ? worldTime() + act.forMs : 0;
    if (act.kind === "stop in a review") return this.#stopInReview(act.forMs);
    if (act.kind === "full disk") world.diskFullUntil = until;
    else if (act.kind === "receiver down") world.receiverDownUntil = until;
    else if ("server" in act) {
      const server = world.servers[act.server % Math.max(world.servers.length, 1)];
      if (server !== undefined) await this.#disturbServer(server, act, until);
    }
    if ("forMs" in act) await later(act.forMs);
  }

  async #stopInReview(forMs: number): Promise<void> {
    const { workspace, servers, database } = this.#world;
    for (let waited = 0; waited < 120_000; waited += 20) {
      await later(20);
      const threadId = workspace.appliedNow();
      if (threadId === undefined) continue;
      const sql = "SELECT lease_owner FROM runs WHERE thread_id = ? AND lease_owner IS NOT NULL";
      const { lease_owner: owner = "" } = (database.prepare(sql).get(threadId) ?? {}) as {
        lease_owner?: string;
      };
      const server = servers.find(({ place }) => owner.endsWith(`.sim.${place.name}`));
      if (server === undefined) continue;
      server.place.stoppedUntil = worldTime() + forMs;
      // Meanwhile a person edits what the change is about.
      for (let edits = 0; edits < 3; edits += 1) {
        await later((forMs / 3) * this.#draw());
        workspace.edit(this.#draw, `edit ${edits} after ${worldTime()}`);
      }
      return;
    }
  }

  async #disturbServer(server: Server, act: Extract<Act, { server: number }>, until: number): Promise<void> {
    const world = this.#world;
    const { place } = server;
    if (act.kind === "stop") place.stoppedUntil = until;
    if (act.kind === "clock step") place.aheadMs += act.byMs;
    if (act.kind === "lost connection") world.unreachableUntil.set(place.name, until);
    if (act.kind === "slow storage") world.slowUntil.set(place.name, until);
    if (act.kind !== "kill") return;
    world.kill(server);
    await later(act.forMs);
    world.open();
  }
}
