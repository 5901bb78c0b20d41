/** One conversation of an editor: a thread, whose open run is followed until it ends. */
import type { PromptResponse, SessionUpdate, StopReason } from "@agentclientprotocol/sdk";
import { GOAL_NOT_USED } from "../views/goal-report.ts";
import { defined } from "../../core/unknown.ts";
import { DeepAgentError } from "../../core/errors.ts";
import type { RunEvent } from "../../runs/events.ts";
import { type OpenQuestion, type Run, type RunView, isFinal, isQuestion, waitingIn } from "../../runs/run.ts";
import { goalCommand, goalReply } from "./prompt.ts";
import { type Desk, askPermission, askQuestion, canReply, questionText, replyTo } from "./people.ts";
import { withAnswer } from "../views/spoken.ts";
import { RunUpdates, messageOf } from "./updates.ts";
import words from "./words.json" with { type: "json" };

/** A shorter text of an event is whole. */
const CUT_FROM = 1900;
/** Runs of a conversation that are shown again when it is loaded. */
export const MAX_REPLAYED = 200;

/** A message of the person. `goal`: of the run that it starts. */
interface Message {
  text: string;
  goal: readonly string[] | undefined;
}

interface Following {
  runId: string;
  /** Resolves with the run once it has ended; `undefined`: the session was closed before. */
  ended: Promise<RunView | undefined>;
  /** Resolves when all that the journal had at the beginning is shown. */
  caughtUp: Promise<void>;
}

export class Session {
  readonly #desk: Desk;
  readonly #closing = new AbortController();
  #following: Following | undefined;
  #hasThread: boolean;
  /** One message after the other. */
  #told: Promise<unknown> = Promise.resolve();
  /** Messages of this connection that the editor shows already. */
  readonly #own: string[] = [];
  /** Questions that the next message answers, by their ids. */
  readonly #open = new Map<string, OpenQuestion>();
  /** Called when the person has to write before the run continues. */
  #onQuestion: (() => void) | undefined;
  /** Goal of the next run, in the person's words. */
  #goal: readonly string[] | undefined;
  /** Sentence to show once, with the first prompt. */
  #note: string | undefined;

  constructor(desk: Desk, { hasThread, note }: { hasThread: boolean; note?: string | undefined }) {
    this.#desk = desk;
    this.#hasThread = hasThread;
    this.#note = note;
  }

  get folder(): string {
    return this.#desk.cwd;
  }

  /** Shows earlier runs, oldest first. An open one is followed from then on. */
  async replay(runs: readonly Pick<Run, "id" | "task" | "lastSeq" | "status">[]): Promise<void> {
    for (const run of runs) {
      await this.#desk.update(messageOf("user_message_chunk", run.task, run.id));
      const following = this.#follow(run.id, run.lastSeq);
      await (isFinal(run.status) ? following.ended : following.caughtUp);
    }
  }

  /** Resolves when the run has ended, or waits for a message of the person. */
  async prompt(message: Message, signal: AbortSignal): Promise<PromptResponse> {
    const note = this.#note;
    this.#note = undefined;
    if (note !== undefined) await this.#desk.say(note);
    const following = await this.#tell(message);
    if (following === undefined) return { stopReason: "end_turn" };
    const cancel = (): void => void this.cancel().catch(() => undefined);
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    try {
      const asked = new Promise<"asked">((resolve) => (this.#onQuestion = () => resolve("asked")));
      const end = await Promise.race([following.ended, asked]);
      if (end === "asked") return { stopReason: "end_turn" };
      if (end === undefined) throw new DeepAgentError("shutting_down", "The agent is shutting down.");
      const { run } = end;
      if (run.status === "cancelled") return { stopReason: "cancelled" };
      if (run.failure !== undefined) throw new DeepAgentError(run.failure.reason, run.failure.message);
      return { stopReason: STOPS[run.stopReason ?? ""] ?? "end_turn" };
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  async cancel(): Promise<void> {
    const { runs } = this.#desk;
    await this.#told.catch(() => undefined);
    const runId = this.#following?.runId;
    if (runId !== undefined) await runs.control.cancel(runId, "Cancelled in the editor.");
  }

  close(): void {
    this.#closing.abort();
  }

  /**
   * Starts a run, messages the open one, or answers its question. Returns undefined if the turn has ended, and the
   * person has been shown why.
   */
  #tell({ text, goal }: Message): Promise<Following | undefined> {
    const told = this.#told
      .catch(() => undefined)
      .then(async () => {
        const criteria = goalCommand(text);
        if (criteria !== undefined) {
          const reply = goalReply(criteria);
          if (reply.isTaken) this.#goal = criteria.length === 0 ? undefined : criteria;
          await this.#desk.say(reply.text);
          return undefined;
        }
        const [question] = this.#open.values();
        if (question === undefined) return this.#start(text, goal ?? this.#goal);
        const problem = await replyTo(question, text, this.#desk);
        if (problem !== undefined) {
          await this.#desk.say(`${problem}\n\n${questionText(question, this.#desk)}`);
          return undefined;
        }
        this.#open.delete(question.id);
        return this.#following;
      });
    this.#told = told;
    return told;
  }

  async #start(text: string, goal: readonly string[] | undefined): Promise<Following> {
    const { runs, sessionId } = this.#desk;
    const place = this.#hasThread ? { threadId: sessionId } : { newThreadId: sessionId };
    this.#own.push(text);
    const started = await runs.control.start({ task: text, ...defined({ goal }), ...place, by: "acp" });
    if (!started.ok || started.how !== "told") this.#own.pop();
    if (!started.ok) throw new DeepAgentError(started.code, started.message);
    this.#hasThread = true;
    if (started.how !== "told") this.#goal = undefined;
    else if (goal !== undefined) await this.#desk.say(GOAL_NOT_USED);
    return this.#follow(started.run.id, 0);
  }

  #follow(runId: string, until: number): Following {
    if (this.#following?.runId === runId) return this.#following;
    let catchUp = (): void => undefined;
    const caughtUp = new Promise<void>((resolve) => (catchUp = resolve));
    const ended = this.#show(runId, until, catchUp).finally(() => {
      catchUp();
      if (this.#following?.runId === runId) this.#following = undefined;
    });
    // A prompt gets the failure; one without a prompt is logged.
    ended.catch((error: unknown) => this.#desk.logger.warn("acp.not_followed", { runId, error }));
    return (this.#following = { runId, ended, caughtUp });
  }

  async #show(runId: string, until: number, catchUp: () => void): Promise<RunView | undefined> {
    const { runs, cwd } = this.#desk;
    const updates = new RunUpdates(cwd);
    const dialogs = new Map<string, AbortController>();
    try {
      const signal = this.#closing.signal;
      for await (const event of runs.watch.live(runId, { after: 0, signal })) {
        if (event.kind === "live_text") {
          for (const update of updates.live(event)) await this.#desk.update(update);
          continue;
        }
        for (const update of await this.#updatesOf(event, updates, until)) await this.#desk.update(update);
        await this.#people(event, updates, dialogs);
        if (event.seq >= until) catchUp();
      }
    } finally {
      for (const dialog of dialogs.values()) dialog.abort();
    }
    const view = await runs.read.view(runId);
    return view !== undefined && isFinal(view.run.status) ? view : undefined;
  }

  async #updatesOf(event: RunEvent, updates: RunUpdates, until: number): Promise<SessionUpdate[]> {
    if (event.kind === "message_received") {
      const { text, messageId } = event.data;
      // The journal keeps the beginning of a long text.
      const beginning = text.length >= CUT_FROM ? text.slice(0, CUT_FROM / 3) : undefined;
      const own = this.#own.findIndex(
        (one) => one === text || (beginning !== undefined && one.startsWith(beginning)),
      );
      if (own >= 0 && event.seq > until) this.#own.splice(own, 1);
      else return [messageOf("user_message_chunk", text, messageId)];
    }
    return updates.of(await withAnswer(event, this.#desk.runs));
  }

  /** Asks the open requests, and closes the dialogs of those decided elsewhere. */
  async #people(event: RunEvent, updates: RunUpdates, dialogs: Map<string, AbortController>): Promise<void> {
    const { runs } = this.#desk;
    if (event.kind === "approval_decided") return dialogs.get(event.data.approvalId)?.abort();
    if (event.kind === "question_answered") {
      this.#open.delete(event.data.questionId);
      return dialogs.get(event.data.questionId)?.abort();
    }
    if (event.kind !== "approval_requested" && event.kind !== "question_asked") return;
    const { runId, data } = event;
    const id = "approvalId" in data ? data.approvalId : data.questionId;
    const view = await runs.read.view(runId);
    const waiting = view && waitingIn(view).find((one) => one.id === id);
    if (waiting === undefined) return;
    const dialog = new AbortController();
    dialogs.set(id, dialog);
    const asking = isQuestion(waiting)
      ? this.#ask(waiting, dialog.signal)
      : askPermission(waiting, updates, this.#desk, dialog.signal);
    asking.catch((error: unknown) => this.#desk.logger.warn("acp.not_asked", { runId, id, error }));
  }

  /** Ends the turn with the question if the editor has no form, and the next message answers it. */
  async #ask(question: OpenQuestion, signal: AbortSignal): Promise<void> {
    if ((await askQuestion(question, this.#desk, signal)) || signal.aborted) return;
    await this.#desk.say(questionText(question, this.#desk));
    if (canReply(question)) this.#open.set(question.id, question);
    this.#onQuestion?.();
  }
}

const STOPS = words.stops as Readonly<Record<string, StopReason>>; // the table has only these
