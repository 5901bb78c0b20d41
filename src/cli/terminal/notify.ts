/** Calls a person back to the terminal. */
import type { Environment } from "../../agent/models/choose.ts";
import type { Config } from "../../config/schema.ts";
import type { Clock } from "../../core/clock.ts";
import { displayName, oneLine } from "../../core/text.ts";
import { control, print } from "./printer.ts";

const BELL = control("\u0007");
const BEGIN = control("\u001b]");
const END = control("\u001b\\");
export interface CallerOptions {
  output: Pick<NodeJS.WriteStream, "isTTY" | "write">;
  how: Config["notify"];
  env: Environment;
  /** Does not jump. */
  clock: Clock;
}

/** Calls the person at a terminal: by its bell, and with a message on the desktop where it is known to show one. */
export class Caller {
  readonly #options: CallerOptions;
  #seenAt: number;

  constructor(options: CallerOptions) {
    this.#options = options;
    this.#seenAt = options.clock();
  }

  /** The person is needed. */
  call(text: string): void {
    const { output, how, env } = this.#options;
    if (!output.isTTY || how === "off") return;
    const shown = oneLine(displayName(text), 120);
    print((how === "desktop" ? desktopMessage(shown, env) : "") + BELL, output);
  }

  /** The person did something here. */
  seen(): void {
    this.#seenAt = this.#options.clock();
  }

  /** Something has ended that the person may no longer look at. */
  ended(text: string): void {
    // After so long without input the person may have looked away.
    if (this.#options.clock() - this.#seenAt > 30_000) this.call(text);
  }
}

/** Elsewhere the sequence could be shown as text, or mean something else; inside tmux it does not get through. */
function desktopMessage(text: string, { TERM = "", TERM_PROGRAM = "", TMUX }: Environment): string {
  if (TMUX !== undefined) return "";
  const message = `deepagent-mcp: ${text}`;
  if (["iTerm.app", "WezTerm", "ghostty"].includes(TERM_PROGRAM)) return `${BEGIN}9;${message}${BELL}`;
  if (TERM === "xterm-kitty") return `${BEGIN}99;;${message}${END}`;
  return /^(foot|rxvt)/.test(TERM)
    ? `${BEGIN}777;notify;deepagent-mcp;${text.replaceAll(";", ",")}${END}`
    : "";
}
