import type { Colors } from "../colors.ts";
import type { RunPicture } from "./picture.ts";
import { newLines, renderTree } from "./tree.ts";

/** Where the demo shows itself. */
export interface Screen {
  /** The newest state of the run. */
  show(picture: RunPicture): void;
  /** Takes the live view away, and leaves `text` above it. */
  print(text: string): void;
  /** Takes the live view away until the next `resume`, for a question. */
  pause(): void;
  resume(): void;
  close(): void;
}

const FRAME_MS = 100;

/** Redraws the run in place. `output` must be a terminal. */
export function liveScreen(output: NodeJS.WriteStream, colors: Colors): Screen {
  let picture: RunPicture | undefined;
  let drawn = 0;
  let frame = 0;
  let paused = false;
  const erase = (): void => {
    if (drawn > 0) output.write(`\u001b[${drawn}A\r\u001b[J`);
    drawn = 0;
  };
  const draw = (): void => {
    if (picture === undefined || paused) return;
    const room = Math.max(output.rows - 1, 3);
    const lines = renderTree(picture, { colors, width: output.columns, frame }).slice(-room);
    // One write, so that nothing flickers.
    const back = drawn > 0 ? `\u001b[${drawn}A\r` : "";
    output.write(`${back}${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
    drawn = lines.length;
  };
  const timer = setInterval(() => {
    frame += 1;
    draw();
  }, FRAME_MS);
  const hideCursor = (): void => void output.write("\u001b[?25l");
  const showCursor = (): void => void output.write("\u001b[?25h");
  hideCursor();
  return {
    show: (next) => {
      picture = next;
      draw();
    },
    print: (text) => {
      erase();
      output.write(`${text}\n`);
      draw();
    },
    pause: () => {
      paused = true;
      erase();
      showCursor();
    },
    resume: () => {
      paused = false;
      hideCursor();
      draw();
    },
    close: () => {
      clearInterval(timer);
      draw();
      showCursor();
    },
  };
}

/** Writes what is new, line by line, with the seconds since the start. */
export function plainScreen(output: NodeJS.WritableStream, now: () => number): Screen {
  const start = now();
  let before: RunPicture | undefined;
  return {
    show: (picture) => {
      const seconds = ((now() - start) / 1000).toFixed(1).padStart(5);
      for (const line of newLines(before, picture)) output.write(`[${seconds}s] ${line}\n`);
      before = picture;
    },
    print: (text) => void output.write(`${text}\n`),
    pause: () => {},
    resume: () => {},
    close: () => {},
  };
}
