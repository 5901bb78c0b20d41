/** Texts of agents as their models write them, for those who follow the runs in this process. Nothing is stored. */
import { oneLine } from "../core/text.ts";

/** A text that the model of a run's agent writes, or has just written. */
export interface LiveText {
  kind: "live_text";
  /** Unique among the texts of a run, in other processes too. */
  id: string;
  /** All of it so far. */
  text: string;
}

/** `isTold`: the journal has the event of its model call. */
type KeptText = Omit<LiveText, "kind"> & { isTold: boolean };

/** Texts of a run that are kept for slow followers. */
const KEPT = 4;

export class LiveTexts {
  readonly #feed: { notifyText: (runId: string) => void };
  /** By run, while this process works on it; the newest text last. */
  readonly #runs = new Map<string, KeptText[]>();
  #count = 0;

  constructor(feed: { notifyText: (runId: string) => void }) {
    this.#feed = feed;
  }

  /** Begins a stretch of work on a run. `claim`: the number that this process claimed it under. */
  speaker(runId: string, claim: number) {
    const texts: KeptText[] = [];
    this.#runs.set(runId, texts);
    let step: NodeJS.Timeout | undefined;
    const notify = (): void => {
      step = undefined;
      this.#feed.notifyText(runId);
    };
    return {
      /** Takes the text of the model call under way so far; an empty one begins another call, or the same again. */
      say: (text: string): void => {
        const last = texts.at(-1);
        if (last !== undefined && (text !== "" || last.text === "")) last.text = text;
        else texts.push({ id: `${runId}:${claim}.${(this.#count += 1)}`, text, isTold: false });
        if (texts.length > KEPT) texts.shift();
        // Parts that arrive within this time are one step for followers.
        if (text !== "") step ??= setTimeout(notify, 30).unref();
      },
      /** The journal has the event of a model call, with this beginning of its text. */
      told: (beginning: string): void => {
        const found = texts.findIndex(({ text, isTold }) => !isTold && isBeginning(beginning, text));
        for (const one of texts.slice(0, found + 1)) one.isTold = true;
      },
      end: (): void => {
        clearTimeout(step);
        if (this.#runs.get(runId) === texts) this.#runs.delete(runId);
      },
    };
  }

  /** Returns each text that changed since the last look, whole. Begins with those the journal lacks, from `from` on. */
  reader(runId: string, from?: string): () => LiveText[] {
    let texts: readonly KeptText[] | undefined;
    const seen = new Map<string, number>();
    const look = (): LiveText[] => {
      const changed = (texts ?? []).filter(({ id, text }) => text !== "" && seen.get(id) !== text.length);
      for (const { id, text } of changed) seen.set(id, text.length);
      return changed.map(({ id, text }) => ({ kind: "live_text", id, text }));
    };
    return () => {
      const now = this.#runs.get(runId);
      // The run may have stopped working before a slow follower looks.
      const left = now === texts ? [] : look();
      if (now !== undefined && now !== texts) {
        texts = now;
        seen.clear();
        const first = now.findIndex(({ id, isTold }) => id === from || !isTold);
        for (const { id, text } of now.slice(0, first === -1 ? now.length : first)) seen.set(id, text.length);
      }
      return [...left, ...look()];
    };
  }
}

/** True if the journal has `text` as this beginning: 300 characters on one line. */
export const isBeginning = (beginning: string, text: string): boolean =>
  beginning !== "" && oneLine(text, 300) === beginning;
