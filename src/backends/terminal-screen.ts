/** Renders the last frame that a terminal would show of an output, without colours. */

/** Rows that output can still change. */
export const SCREEN_ROWS = 60;
/** Characters up to which a row can be drawn over. */
const SCREEN_COLUMNS = 500;

/** A row of characters, which a program can draw over. */
export class ScreenRow {
  isListed = false;
  /** It was erased after it was listed. */
  isErased = false;
  #text = "";
  #length = 0;
  /** Its characters, since it was first drawn over. */
  #cells: string[] | undefined;

  get text(): string {
    return this.#cells?.join("") ?? this.#text;
  }

  get length(): number {
    return this.#cells?.length ?? this.#length;
  }

  /** Writes the text and returns the column behind it. */
  put(column: number, text: string): number {
    const isPlain = !/[\ud800-\udfff]/.test(text);
    if (this.#cells === undefined && column === this.#length) {
      this.#text += text;
      this.#length += isPlain ? text.length : Array.from(text).length;
      return this.#length;
    }
    const cells = this.#editable();
    const end = cells.length;
    if (end < column) {
      cells.length = column;
      cells.fill(" ", end);
    }
    let at = column;
    for (const character of text) cells[at++] = character;
    return at;
  }

  erase(from: number, to = Infinity): void {
    const cells = this.#editable();
    if (to < cells.length) cells.fill(" ", from, to);
    else cells.length = Math.min(cells.length, from);
  }

  #editable(): string[] {
    return (this.#cells ??= Array.from(this.#text));
  }
}

/** Everything but text: C0 controls without tabs, DEL, and C1 controls. */
const CONTROL = /[\0-\x08\x0a-\x1f\x7f-\x9f]/g; // oxlint-disable-line no-control-regex
const SEQUENCE = /(?:\x1b\[|\x9b)([0-?]{0,60})[ -/]{0,4}(?:([@-~])|(?=[^ -~]))|\x1b[ -/]{0,4}([0-Z\\^-~])/y; // oxlint-disable-line no-control-regex
const UNFINISHED_SEQUENCE = /(?:\x1b\[|\x9b)[0-?]{0,60}[ -/]{0,4}$|\x1b[ -/]{0,4}$/y; // oxlint-disable-line no-control-regex
/** Titles, links and pictures begin so. They go on to a bell, a terminator or the end of the line. */
const STRING = /\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]/y; // oxlint-disable-line no-control-regex
const STRING_END = /\x07|\x9c|\x1b\\?|[\x18\x1a\n]/g; // oxlint-disable-line no-control-regex

function matchAt(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(text);
}

/**
 * The screen of one stream of output. Passes each row to `onRow` when the cursor first leaves it downwards; a row can
 * change until `SCREEN_ROWS` others follow. Takes time in proportion to the output.
 */
export class TerminalScreen {
  readonly #onRow: (row: ScreenRow, isEnded: boolean) => void;
  #rows: [ScreenRow, ...ScreenRow[]] = [new ScreenRow()];
  #y = 0;
  #x = 0;
  #saved = { x: 0, y: 0 };
  /** The beginning of a control sequence. */
  #rest = "";
  #isInString = false;
  #isHidden = false;

  constructor(onRow: (row: ScreenRow, isEnded: boolean) => void) {
    this.#onRow = onRow;
  }

  /** The last row, if `onRow` has not received it. */
  get unfinished(): ScreenRow | undefined {
    const last = this.#rows.at(-1);
    return last?.isListed === false ? last : undefined;
  }

  write(added: string): void {
    const text = this.#rest + added;
    this.#rest = "";
    for (let at = 0; at < text.length;) {
      if (this.#isInString) {
        const end = matchAt(STRING_END, text, at);
        if (end === null) return;
        if (end[0] === "\x1b" && end.index === text.length - 1) {
          this.#rest = "\x1b";
          return;
        }
        this.#isInString = false;
        at = end[0] === "\n" || end[0] === "\x1b" ? end.index : end.index + end[0].length;
        continue;
      }
      const next = matchAt(CONTROL, text, at)?.index ?? text.length;
      if (next > at && !this.#isHidden) {
        if (this.#x < this.#row.length && this.#row.length > SCREEN_COLUMNS) this.#newLine();
        this.#x = this.#row.put(this.#x, text.slice(at, next));
      }
      at = next;
      if (at === text.length) return;
      if (matchAt(UNFINISHED_SEQUENCE, text, at)) {
        this.#rest = text.slice(at);
        return;
      }
      at += this.#control(text, at);
    }
  }

  /** Passes the last row, too. */
  finish(): void {
    const { unfinished } = this;
    if (unfinished !== undefined && unfinished.length > 0) this.#list(unfinished, this.#isHidden);
    if (this.#isHidden) {
      const notice = new ScreenRow();
      notice.put(0, "[A full-screen program drew the rest, which is not shown]");
      this.#list(notice, false);
    }
    this.#isHidden = false;
    this.#rest = "";
    this.#rows = [new ScreenRow()];
    this.#y = this.#x = 0;
  }

  /** Applies the control sequence at this place. Returns its length. */
  #control(text: string, at: number): number {
    const string = matchAt(STRING, text, at);
    if (string) {
      this.#isInString = true;
      return string[0].length;
    }
    const sequence = matchAt(SEQUENCE, text, at);
    if (!sequence) {
      if (!this.#isHidden) {
        const character = text.charAt(at);
        if (character === "\n" || character === "\v" || character === "\x85") this.#newLine();
        else if (character === "\r") this.#x = 0;
        else if (character === "\b") this.#x = Math.max(0, this.#x - 1);
      }
      return 1;
    }
    const [whole, parameters = "", final, other] = sequence;
    // Programs switch to the full screen and back with these.
    if (/^\?(47|1047|1049)$/.test(parameters) && (final === "h" || final === "l"))
      this.#isHidden = final === "h";
    else if (!this.#isHidden) this.#move(final ?? ESCAPES[other ?? ""] ?? "", parameters);
    return whole.length;
  }

  #move(command: string, parameters: string): void {
    const [first = 0, second = 0] = parameters.split(";").map((digits) => Number.parseInt(digits, 10) || 0);
    const count = Math.max(1, first);
    const bottom = this.#rows.length - 1;
    if (command === "A" || command === "F") this.#y = Math.max(0, this.#y - count);
    if (command === "B" || command === "E") this.#y = Math.min(bottom, this.#y + count);
    if (command === "E" || command === "F") this.#x = 0;
    if (command === "C") this.#x = Math.min(this.#x + count, Math.max(this.#x, SCREEN_COLUMNS));
    if (command === "D") this.#x = Math.max(0, this.#x - count);
    if (command === "G" || command === "`") this.#x = Math.min(count, SCREEN_COLUMNS) - 1;
    if (command === "H" || command === "f") {
      const y = Math.min(count, SCREEN_ROWS) - 1;
      this.#y = Math.min(y, this.#rows.length - 1);
      while (this.#y < y) this.#newLine();
      this.#x = Math.min(Math.max(1, second), SCREEN_COLUMNS) - 1;
    }
    if (command === "s") this.#saved = { x: this.#x, y: this.#y };
    if (command === "u") [this.#x, this.#y] = [this.#saved.x, Math.min(this.#saved.y, bottom)];
    if (command === "K" && first === 0) this.#row.erase(this.#x);
    else if (command === "K") {
      this.#row.erase(0, first === 1 ? Math.min(this.#x + 1, SCREEN_COLUMNS) : Infinity);
      this.#x = Math.min(this.#x, SCREEN_COLUMNS);
    }
    if (command === "J") this.#eraseRows(first);
  }

  #eraseRows(part: number): void {
    if (part === 1) return;
    if (part === 0) this.#row.erase(this.#x);
    for (const row of this.#rows.splice(part === 0 ? this.#y + 1 : 0)) row.isErased = true;
    if (this.#rows.length > 0) return;
    this.#rows = [new ScreenRow()];
    this.#y = this.#x = 0;
  }

  get #row(): ScreenRow {
    return this.#rows[this.#y] ?? this.#rows[0];
  }

  #newLine(): void {
    this.#x = 0;
    this.#y += 1;
    const last = this.#rows.at(-1);
    if (this.#y < this.#rows.length || last === undefined) return;
    this.#list(last, true);
    this.#rows.push(new ScreenRow());
    if (this.#rows.length <= SCREEN_ROWS) return;
    this.#rows.shift();
    this.#y -= 1;
  }

  #list(row: ScreenRow, isEnded: boolean): void {
    if (row.isListed) return;
    row.isListed = true;
    this.#onRow(row, isEnded);
  }
}

/** Older sequences that mean the same as newer ones. */
const ESCAPES: Readonly<Record<string, string>> = { "7": "s", "8": "u", M: "A", E: "E" };

export function terminalText(output: string): string {
  if (matchAt(CONTROL, output.replaceAll("\n", ""), 0) === null) return output;
  const rows: { row: ScreenRow; end: string }[] = [];
  const screen = new TerminalScreen((row, isEnded) => rows.push({ row, end: isEnded ? "\n" : "" }));
  screen.write(output);
  screen.finish();
  return rows.map(({ row, end }) => (row.isErased ? "" : row.text + end)).join("");
}
