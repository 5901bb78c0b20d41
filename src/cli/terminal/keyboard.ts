/** The keys of the terminal, which shows none of them while they are taken: they would break the picture. */
import { openSync } from "node:fs";
import { ReadStream } from "node:tty";
import { orElse } from "../../core/errors.ts";

export interface KeyHandlers {
  /** One key; several characters are an arrow or a text that was pasted. Default: it is swallowed. */
  key?: (keys: string) => void;
  /** Ctrl-C. Default: a signal, as from the terminal. */
  interrupt?: () => void;
  /** There are no more keys. */
  end?: () => void;
  /** The program is about to stop, as at Ctrl-Z: the terminal is somebody else's until `continued`. */
  stopping?: () => void;
  continued?: () => void;
}

/** Keys that mean a signal, unless a program takes them. */
const SIGNALS: ReadonlyMap<string, NodeJS.Signals> = new Map([
  ["\u0003", "SIGINT"],
  ["\u001a", "SIGTSTP"],
  ["\u001c", "SIGQUIT"],
]);

/**
 * Sends a signal to all programs of the process group, as the terminal does. Windows has no such groups, and of these
 * signals only Ctrl-C.
 */
export function raise(
  signal: NodeJS.Signals,
  platform: NodeJS.Platform = process.platform,
  target: {
    kill(process: number, signal: NodeJS.Signals): unknown;
    emit(signal: NodeJS.Signals): unknown;
  } = process,
): void {
  if (platform !== "win32") target.kill(0, signal);
  else if (signal === "SIGINT") target.emit(signal);
}

/** Delay, in ms, after which a process continues if its shell could not stop it. */
const STOP_MS = 50;

/**
 * The keyboard of this process: who took it last has the keys. While nobody has it, and when the process stops or ends
 * in a way that it notices, the terminal is as it was before.
 */
export class Keyboard {
  readonly #takers: KeyHandlers[] = [];
  #input: ReadStream | undefined;
  #isOpen = false;
  #isFree = false;

  /** Takes the keys until the function it returns is called. */
  take(handlers: KeyHandlers): () => void {
    this.#takers.push(handlers);
    if (this.#takers.length === 1) this.#open();
    return () => {
      const index = this.#takers.indexOf(handlers);
      if (index >= 0) this.#takers.splice(index, 1);
      if (this.#takers.length === 0) this.#close();
    };
  }

  /** Leaves the terminal as it was to `work`, such as an editor. */
  async free<T>(work: () => Promise<T>): Promise<T> {
    this.#isFree = true;
    if (this.#takers.length > 0) this.#close();
    try {
      return await work();
    } finally {
      this.#isFree = false;
      if (this.#takers.length > 0) this.#open();
    }
  }

  #open(): void {
    // Standard input, or where that is something else, the terminal by its own name.
    this.#input ??= process.stdin.isTTY
      ? process.stdin
      : orElse(() => new ReadStream(openSync("/dev/tty", "r")).unref(), undefined);
    const input = this.#input;
    if (input === undefined || this.#isOpen || this.#isFree) return;
    this.#isOpen = true;
    if (process.platform !== "win32")
      process.on("SIGTSTP", this.#stop).on("SIGCONT", this.#continue).on("SIGQUIT", this.#quit);
    process.on("exit", this.#letGo);
    input.on("data", this.#read).on("end", this.#end);
    // A closed terminal also sends a signal.
    if (input.listenerCount("error") === 0) input.on("error", () => this.#end());
    input.setRawMode(true);
    input.resume();
  }

  #close(): void {
    const input = this.#input;
    if (input === undefined || !this.#isOpen) return;
    this.#isOpen = false;
    process.off("SIGTSTP", this.#stop).off("SIGCONT", this.#continue).off("SIGQUIT", this.#quit);
    process.off("exit", this.#letGo);
    input.off("data", this.#read).off("end", this.#end);
    this.#letGo();
    input.pause();
  }

  readonly #letGo = (): void => void this.#input?.setRawMode(false);

  readonly #read = (chunk: Buffer): void => {
    const keys = chunk.toString();
    const taker = this.#takers.at(-1);
    const [, signal] = [...SIGNALS].find(([key]) => keys.includes(key)) ?? [];
    if (signal === undefined) taker?.key?.(keys);
    else if (signal === "SIGINT" && taker?.interrupt !== undefined) taker.interrupt();
    else raise(signal);
  };

  readonly #end = (): void => this.#takers.at(-1)?.end?.();

  readonly #stop = (): void => {
    this.#takers.at(-1)?.stopping?.();
    this.#close();
    process.kill(process.pid, "SIGTSTP");
    setTimeout(() => {
      if (this.#takers.length === 0) return;
      this.#open();
      this.#takers.at(-1)?.continued?.();
    }, STOP_MS);
  };

  /** Whatever stopped the process may have changed the terminal, of which Node knows nothing. */
  readonly #continue = (): void => {
    this.#letGo();
    this.#input?.setRawMode(true);
  };

  readonly #quit = (): void => {
    this.#takers.at(-1)?.stopping?.();
    this.#close();
    process.kill(process.pid, "SIGQUIT");
  };
}
