/** Shows a run in the terminal: redrawn in place, or line by line. */
import { duration, tailOf } from "../../core/text.ts";
import type { Keyboard } from "./keyboard.ts";
import { control, print } from "./printer.ts";
import { type Colors, displayWidth, fit } from "./text.ts";
import { counted } from "../../tools/format.ts";
import { type AgentPicture, type RunPicture, clean, isShownAbove, renderTree, titleOf } from "./tree.ts";

export interface Screen {
  /** The newest state of the run. */
  show(picture: RunPicture): void;
  /** The text that the agent writes now, whole so far. Absent: it shows texts once they are written. */
  write?(text: string): void;
  /** Takes the live view away, and leaves `text` above it. */
  print(text: string): void;
  /** Takes the live view away until the next `resume`, for a question. Absent: there is none. */
  pause?(): void;
  resume?(): void;
  close?(): void;
}

const HIDE_CURSOR = control("\u001b[?25l");
/** Terminals disagree on the width of some emoji: excess text is cut, and does not move the lines below it. */
const NO_WRAP = control("\u001b[?7l");
const WRAP = control("\u001b[?7h");

/** Redraws the run in place on a terminal, and discards the keys pressed while it does. */
export class LiveScreen implements Screen {
  readonly #output: NodeJS.WriteStream;
  readonly #colors: Colors;
  readonly #timer: NodeJS.Timeout;
  readonly #giveBackKeys: () => void;
  #picture: RunPicture | undefined;
  /** The text under way, until something else happens. */
  #text = "";
  /** The width of each line on the screen. */
  #drawn: number[] = [];
  #frame = 0;
  #paused = false;

  constructor(output: NodeJS.WriteStream, colors: Colors, keyboard: Keyboard) {
    this.#output = output;
    this.#colors = colors;
    let wasPaused = false;
    this.#giveBackKeys = keyboard.take({
      stopping: () => {
        wasPaused = this.#paused;
        this.pause();
      },
      continued: () => {
        if (!wasPaused) this.resume();
      },
    });
    this.#timer = setInterval(() => {
      this.#frame += 1;
      this.#draw();
    }, 100);
    print(HIDE_CURSOR, output);
    output.on("resize", this.#redraw);
    process.once("exit", this.#showCursor);
  }

  show(picture: RunPicture): void {
    this.#picture = picture;
    this.#text = "";
    this.#draw();
  }

  write(text: string): void {
    // It is drawn with the next frame.
    this.#text = text;
  }

  print(text: string): void {
    this.#erase();
    print(`${text}\n`, this.#output);
    this.#draw();
  }

  pause(): void {
    this.#paused = true;
    this.#erase();
    this.#showCursor();
  }

  resume(): void {
    this.#paused = false;
    print(HIDE_CURSOR, this.#output);
    this.#draw();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#output.off("resize", this.#redraw);
    process.off("exit", this.#showCursor);
    this.#draw();
    this.#showCursor();
    this.#giveBackKeys();
  }

  readonly #showCursor = (): void => print(control("\u001b[?25h"), this.#output);

  readonly #redraw = (): void => {
    this.#erase();
    this.#draw();
  };

  /** Line by line: tmux keeps a copy of a screen that is cleared as a whole. */
  #erase(): void {
    const back = this.#back();
    print(`${back}${`${control("\u001b[2K")}\n`.repeat(this.#rows())}${back}`, this.#output);
    this.#drawn = [];
  }

  #draw(): void {
    if (this.#picture === undefined || this.#paused) return;
    const [width, rows] = screenSize(this.#output);
    const style = { colors: this.#colors, width, height: rows - 1, frame: this.#frame, now: Date.now() };
    // The end of a text on one line.
    const end = clean(tailOf(this.#text, Math.max(width - LEAST_MARGIN, 8)));
    const text = end.length < this.#text.trim().length ? `…${end}` : end;
    const picture = text === "" ? this.#picture : { ...this.#picture, activity: text };
    const lines = renderTree(picture, style);
    // One write, so that nothing flickers.
    const drawn = lines.map((line) => `${line}${control("\u001b[K")}\n`).join("");
    print(`${NO_WRAP}${this.#back()}${drawn}${control("\u001b[J")}${WRAP}`, this.#output);
    this.#drawn = lines.map(displayWidth);
  }

  /** Goes back to the first line; keys of before may stand where it begins. */
  #back(): string {
    const rows = this.#rows();
    return control(rows > 0 ? `\u001b[${rows}A\r` : "\r");
  }

  /** Counts the rows on the screen; a terminal that became narrower has wrapped the lines again. */
  #rows(): number {
    const [columns] = screenSize(this.#output);
    return this.#drawn.reduce((sum, width) => sum + Math.max(Math.ceil(width / columns), 1), 0);
  }
}

/** Columns beside the line of the current activity. */
const LEAST_MARGIN = 6;

/** Asks the system each time: the event of a change comes too late for a frame that is due. */
function screenSize(output: NodeJS.WriteStream): [columns: number, rows: number] {
  const [columns, rows] = output.getWindowSize();
  return [columns || 80, rows || 24];
}

/** Prints new lines with the time since the start. */
export function plainScreen(output: NodeJS.WritableStream, now: () => number): Screen {
  const start = now();
  let before: RunPicture | undefined;
  return {
    show: (picture) => {
      const time = duration(now() - start).padStart(6);
      for (const line of newLines(before, picture)) print(`[${time}] ${line}\n`, output);
      before = picture;
    },
    print: (text) => print(`${text}\n`, output),
  };
}

/** Lists the changes between two views, as lines for an output that cannot be redrawn. */
export function newLines(before: RunPicture | undefined, after: RunPicture): string[] {
  const activity = short(after.activity);
  const isTodos = after.activity.startsWith("write_todos");
  const isNews = after.activity !== before?.activity && !isTodos && !isShownAbove(after);
  const known = new Map(before?.todos.map((todo) => [todo.content, todo.status]));
  const isNewPlan = known.size === 0 && after.todos.length > 0;
  const plan = isNewPlan
    ? [`plan: ${after.todos.length} todos`, ...after.todos.map(({ content }) => `  - ${short(content)}`)]
    : [];
  const changes = after.todos
    .filter(({ content, status }) => status !== "pending" && status !== known.get(content))
    .map(({ content, status }) => `${status === "completed" ? "done" : "now"}: ${short(content)}`);
  return [...plan, ...changes, ...newAgentLines(before, after), ...(isNews ? [activity] : [])];
}

function newAgentLines(before: RunPicture | undefined, { agents }: RunPicture): string[] {
  const known = new Map(before?.agents.map((agent) => [agentKey(agent), agent]));
  return agents.flatMap((agent) => {
    const { status, step, tool_calls: calls } = agent;
    const earlier = known.get(agentKey(agent));
    if (status === earlier?.status && step === earlier.step) return [];
    const isOver = status !== "queued" && status !== "working";
    if (isOver && status === earlier?.status) return [];
    const after = isOver ? `${status} after ${counted(calls, "tool call")}: ` : "";
    return [`  ${fit(titleOf(agent.agent, agent.description), 60)}: ${after}${short(step)}`];
  });
}

const agentKey = ({ call_ids: ids }: AgentPicture): string => ids.join(" ");

const short = (text: string): string => fit(clean(text), 100);
