/** Films a terminal: a real program in a real terminal, as one picture that moves without a script. */
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import headless from "@xterm/headless";

const PSEUDO_TERMINAL = join(dirname(fileURLToPath(import.meta.url)), "pseudo-terminal.py");
const PATIENCE_MS = 60_000;
/** What comes within this time is one frame. */
const FRAME_MS = 30;

/**
 * Runs `command` and lets `act` use it: `until(pattern)` waits for a screen and gives its text,
 * `type(keys)` types.
 * Gives the screens with the times at which they came; each is a list of rows, each a list of styled parts.
 */
export async function film({ command, columns, rows, act, ...options }) {
  const child = spawn("python3", [PSEUDO_TERMINAL, `${columns} ${rows}`, ...command], {
    ...options,
    stdio: ["pipe", "pipe", "inherit", "pipe", "pipe"],
  });
  const terminal = new headless.Terminal({ cols: columns, rows, scrollback: 1000, allowProposedApi: true });
  const frames = [];
  const keep = () => {
    const screen = screenOf(terminal);
    const now = performance.now();
    const last = frames.at(-1);
    if (last !== undefined && now - last.time < FRAME_MS) last.screen = screen;
    else frames.push({ time: now, screen });
  };
  child.stdout.on("data", (chunk) => terminal.write(chunk, keep));
  const text = () => textOf(frames.at(-1)?.screen ?? []);
  const until = async (pattern) => {
    for (const end = Date.now() + PATIENCE_MS; !pattern.test(text()); await delay(10)) {
      if (Date.now() > end) throw new Error(`The screen never matched ${pattern}:\n${text()}`);
    }
    return text();
  };
  try {
    await act({ until, type: (keys) => child.stdin.write(keys) });
  } finally {
    child.kill("SIGKILL");
  }
  return frames;
}

/** The rows of the screen as parts of one style: `{ column, text, style }`. */
function screenOf(terminal) {
  const { active } = terminal.buffer;
  return Array.from({ length: terminal.rows }, (_, row) => {
    const line = active.getLine(active.baseY + row);
    const parts = [];
    for (let column = 0; column < terminal.cols; column += 1) {
      const cell = line?.getCell(column);
      if (cell === undefined || cell.getWidth() === 0) continue;
      const text = cell.getChars() || " ";
      const style = styleOf(cell);
      const last = parts.at(-1);
      // A font may lack a character and take it, with its width, from another one.
      const isPlain = /^[ -~]$/.test(text);
      if (last?.style === style && isPlain && last.isPlain) last.text += text;
      else parts.push({ column, text, style, isPlain });
    }
    return parts;
  });
}

/** The text of a screen. */
export const textOf = (screen) =>
  screen
    .map((row) =>
      row
        .map(({ text }) => text)
        .join("")
        .trimEnd(),
    )
    .join("\n")
    .trimEnd();

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

function styleOf(cell) {
  const color = cell.isFgPalette() ? COLORS[cell.getFgColor() % 8] : "";
  return [color, cell.isBold() ? "bold" : "", cell.isDim() ? "dim" : ""].filter(Boolean).join(" ");
}

const FONT = 14;
const CELL = { width: 8.4, height: 19 };
const MARGIN = 18;
const BAR = 34;

const STYLE = `
svg{--back:#fff;--bar:#f6f8fa;--edge:#d1d9e0;--text:#1f2328;--dim:#59636e;--red:#c21c2c;--green:#116329;--yellow:#7d4e00;--cyan:#0b6580;--blue:#0550ae;--magenta:#8250df}
@media(prefers-color-scheme:dark){svg{--back:#0d1117;--bar:#151b23;--edge:#3d444d;--text:#e6edf3;--dim:#9198a1;--red:#ff7b72;--green:#56d364;--yellow:#e3b341;--cyan:#56d4dd;--blue:#79c0ff;--magenta:#d2a8ff}}
text{font:${FONT}px ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;fill:var(--text)}
.dim{fill:var(--dim)}.bold{font-weight:600}
.red{fill:var(--red)}.green{fill:var(--green)}.yellow{fill:var(--yellow)}.cyan{fill:var(--cyan)}.blue{fill:var(--blue)}.magenta{fill:var(--magenta)}
.strip{animation-timing-function:step-end;animation-iteration-count:infinite}
@media(prefers-reduced-motion:reduce){.strip{animation-name:none!important}}
`.trim();

/**
 * Draws frames (`{ screen, lasts }`, in milliseconds) as an SVG. Every row is a strip of all that it shows one after
 * the other, moved behind a window. Where nothing moves, the frame `still` is seen.
 */
export function filmSvg({ frames, columns, still, title }) {
  const total = frames.reduce((sum, { lasts }) => sum + lasts, 0);
  const rows = frames[0]?.screen.length ?? 0;
  const width = Math.ceil(columns * CELL.width) + 2 * MARGIN;
  const height = rows * CELL.height + BAR + 2 * MARGIN;
  const strips = Array.from({ length: rows }, (_, row) => strip(row, frames, total, still));
  const dots = [0, 1, 2].map(
    (index) => `<circle cx="${MARGIN + 4 + index * 20}" cy="${BAR / 2}" r="6" fill="var(--edge)"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${STYLE}\n${strips.map(({ keyframes }) => keyframes).join("")}.strip{animation-duration:${total / 1000}s}</style>`,
    `<rect x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="10" fill="var(--back)" stroke="var(--edge)"/>`,
    `<path d="M.5 ${BAR}v-23.5a10 10 0 0 1 10-10h${width - 21}a10 10 0 0 1 10 10v23.5z" fill="var(--bar)" stroke="var(--edge)"/>`,
    dots.join(""),
    `<text class="dim" x="${width / 2}" y="${BAR / 2 + 5}" text-anchor="middle">${escaped(title)}</text>`,
    `<g transform="translate(${MARGIN} ${BAR + MARGIN})">`,
    ...strips.map(({ drawing }) => drawing),
    "</g></svg>\n",
  ].join("\n");
}

function strip(row, frames, total, still) {
  const known = new Map();
  const steps = [];
  let time = 0;
  for (const { screen, lasts } of frames) {
    const drawing = rowDrawing(screen[row] ?? []);
    if (!known.has(drawing)) known.set(drawing, known.size);
    const index = known.get(drawing);
    if (steps.at(-1)?.index !== index) steps.push({ index, percent: (time / total) * 100 });
    time += lasts;
  }
  const at = (index) => index * -CELL.height;
  const moves = steps.map(
    ({ index, percent }) => `${rounded(percent)}%{transform:translateY(${at(index)}px)}`,
  );
  const drawings = [...known].map(([drawing, index]) =>
    drawing === "" ? "" : `<g transform="translate(0 ${index * CELL.height})">${drawing}</g>`,
  );
  const isStill = known.size === 1;
  const shown = known.get(rowDrawing(still.screen[row] ?? [])) ?? 0;
  const attributes = isStill
    ? ""
    : ` class="strip" style="animation-name:r${row}" transform="translate(0 ${at(shown)})"`;
  return {
    keyframes: isStill ? "" : `@keyframes r${row}{${moves.join("")}}\n`,
    drawing: `<svg y="${row * CELL.height}" height="${CELL.height}" overflow="hidden"><g${attributes}>${drawings.join("")}</g></svg>`,
  };
}

/** Every word group at its column, whatever the width of the font. */
function rowDrawing(parts) {
  return parts
    .flatMap(({ column, text, style, isPlain }) =>
      [...text.matchAll(/\S+(?: \S+)*/g)].map((found) => {
        const [words] = found;
        const x = rounded((column + found.index) * CELL.width);
        const isLong = isPlain && words.length > 2;
        const length = isLong
          ? ` textLength="${rounded(words.length * CELL.width)}" lengthAdjust="spacingAndGlyphs"`
          : "";
        const name = style === "" ? "" : ` class="${style}"`;
        return `<text x="${x}" y="${FONT}"${name}${length}>${escaped(words)}</text>`;
      }),
    )
    .join("");
}

const rounded = (value) => Math.round(value * 100) / 100;

const escaped = (text) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
