/** Decides which parts of an agent's texts a follower still has to be sent, whether they come live or from the journal. */
import { headOf, wellFormed } from "../../core/text.ts";
import type { RunEvent } from "../../runs/events.ts";
import { type LiveText, isBeginning } from "../../runs/live-texts.ts";
import type { PrincipalRuns } from "../../runs/service.ts";

/** A part of the message with this id. */
export interface Said {
  id: string;
  /** May be empty at the end of a message. */
  text: string;
  /** True if the message ends with it. */
  isLast: boolean;
}

interface Message {
  readonly id: string;
  readonly text: string;
  /** True if the journal has the event of its model call. */
  readonly isTold: boolean;
}

/** The texts that were sent, for a later stream of the same run. */
export interface Sent {
  open?: Message | undefined;
  /** The newest, and those before it that the journal does not have. */
  ended: readonly Message[];
}

/** Adds the whole answer to an event: the journal has the beginning of a long one. */
export async function withAnswer(event: RunEvent, runs: PrincipalRuns): Promise<RunEvent> {
  if (event.kind !== "run_completed") return event;
  const { answer = event.data.answer } = (await runs.read.view(event.runId))?.run ?? {};
  return { ...event, data: { ...event.data, answer } };
}

/**
 * Follows the texts of one run's main agent. A text that came live is not sent again when the journal or the answer has
 * it; the newest text of the journal alone is held back, because it may be the beginning of the answer.
 */
export class Spoken {
  #open: Message | undefined;
  #ended: readonly Message[];
  #held: { id: string; text: string } | undefined;

  constructor({ open, ended }: Sent = { ended: [] }) {
    this.#open = open;
    this.#ended = ended;
  }

  get sent(): Sent {
    return { open: this.#open, ended: this.#ended };
  }

  /** Id of the newest text whose beginning was sent. */
  get newest(): string | undefined {
    return this.#open?.id ?? this.#ended.at(-1)?.id;
  }

  /** An event of the journal. One that is not a text of the main agent completes those before it. */
  of(event: RunEvent): Said[] {
    if (event.kind === "run_completed") return this.answered(event);
    const isTold =
      event.kind === "model_called" && event.agent.length === 0 && event.data.purpose === undefined;
    return isTold ? this.told(event) : this.next();
  }

  /** A text of the agent that is being written. */
  live({ id, text }: LiveText): Said[] {
    if (this.#ended.some((message) => message.id === id)) return [];
    if (this.#open?.id === id) return this.#grow(this.#open, text);
    // The journal may have it already, where somebody begins to follow.
    const isTold = this.#held !== undefined && isBeginning(this.#held.text, text);
    if (isTold) this.#held = undefined;
    const before = [...this.#release(), ...this.#end()];
    return [...before, ...this.#grow({ id, text: "", isTold }, text)];
  }

  /** An event of a model call of the main agent, with the beginning of its text. */
  told({ runId, seq, data: { text } }: Extract<RunEvent, { kind: "model_called" }>): Said[] {
    const before = this.#release();
    if (text === "") return before;
    const known = [...this.#ended, ...(this.#open ? [this.#open] : [])];
    const found = known.findIndex((message) => !message.isTold && isBeginning(text, message.text));
    if (found >= 0) {
      const now = known.map((message, index) => (index > found ? message : { ...message, isTold: true }));
      this.#open = this.#open && now.pop();
      this.#ended = now.filter(({ isTold }, index) => !isTold || index === now.length - 1);
      return before;
    }
    this.#held = { id: `${runId}:${seq}`, text };
    return [...before, ...this.#end()];
  }

  /** Another event: it completes the earlier texts. */
  next(): Said[] {
    return [...this.#release(), ...(this.#open?.isTold ? this.#end() : [])];
  }

  /** The end of the run, with its whole answer. */
  answered({ runId, seq, data: { answer } }: Extract<RunEvent, { kind: "run_completed" }>): Said[] {
    const isHeld = this.#held !== undefined;
    this.#held = undefined;
    const last = this.#open ?? this.#ended.at(-1);
    if (last !== undefined && !isHeld && answer.startsWith(last.text)) {
      const text = answer.slice(last.text.length);
      const isOpen = last === this.#open;
      this.#open = undefined;
      return isOpen || text !== "" ? [{ id: last.id, text, isLast: true }] : [];
    }
    const before = this.#end();
    return answer === "" ? before : [...before, { id: `${runId}:${seq}`, text: answer, isLast: true }];
  }

  /** The end of a stream that ends before the run: a text under way can be continued by another one. */
  pause(): Said[] {
    const released = this.#release();
    return this.#open === undefined ? released : [...released, { id: this.#open.id, text: "", isLast: true }];
  }

  /** The part of a text that was not sent. A text that became another one is left as it is. */
  #grow(message: Message, text: string): Said[] {
    const { id, text: sent } = message;
    // A character whose second half has not come yet waits for it.
    const whole = headOf(`${text} `, text.length);
    if (whole.length <= sent.length || !whole.startsWith(sent)) return [];
    this.#open = { ...message, text: whole };
    return [{ id, text: wellFormed(whole.slice(sent.length)), isLast: false }];
  }

  #release(): Said[] {
    const held = this.#held;
    this.#held = undefined;
    return held === undefined ? [] : [{ ...held, isLast: true }];
  }

  #end(): Said[] {
    const message = this.#open;
    if (message === undefined) return [];
    this.#open = undefined;
    this.#ended = [...this.#ended, message].slice(-4);
    return [{ id: message.id, text: "", isLast: true }];
  }
}
