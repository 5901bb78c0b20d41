/** The folder of a world: a person edits it, and runs propose changes of it from copies. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyOf } from "../../src/proposals/workspace-copy.ts";

const FILES = ["a.txt", "b.txt", "c.txt"];
/** The first lines belong to the person, and then each run has its own. */
const PERSONS = 5;
const OWN = 4;
/** Names of a folder and a file. */
const PARTS = "parts";
const WRITTEN = "written";
const LINES = PERSONS + 6 * OWN;

/** Memory, where there is a folder in it. */
const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export class Workspace {
  readonly home: string;
  readonly folder: string;
  readonly copies: string;
  /** Lines of the person, by file and number. */
  readonly #edits = new Map<string, string>();

  /** `home`: the place of one that another process has made. */
  constructor(name: string, home?: string) {
    this.home = home ?? join(base, `deepagent-simulation-${process.pid}-${name}`);
    this.folder = join(this.home, "workspace");
    this.copies = join(this.home, "copies");
    if (home !== undefined) return;
    rmSync(this.home, { recursive: true, force: true });
    mkdirSync(this.folder, { recursive: true });
    mkdirSync(join(this.home, PARTS));
    for (const file of FILES)
      writeFileSync(
        join(this.folder, file),
        Array.from({ length: LINES }, (_, at) => `line ${at}\n`).join(""),
      );
  }

  /** A person changes a line. */
  edit(draw: () => number, text: string): void {
    const file = FILES[Math.floor(draw() * FILES.length)] ?? "a.txt";
    const line = Math.floor(draw() * (PERSONS - 1));
    replaceLine(join(this.folder, file), line, text);
    this.#edits.set(`${file} ${line}`, text);
  }

  /** An agent changes a line in the copy of its thread. */
  write(threadId: string, number: number, text: string): void {
    const part = this.#partOf(threadId);
    const file = FILES[number % FILES.length] ?? "a.txt";
    // A line between the parts keeps them apart.
    replaceLine(join(copyOf(this.copies, threadId), file), PERSONS + part * OWN + 1 + (number % 2), text);
    appendFileSync(join(this.home, WRITTEN), `${JSON.stringify([text, { threadId, file }])}\n`);
  }

  /** The part of the lines that a thread has. Several processes may ask. */
  #partOf(threadId: string): number {
    for (let part = 0; ; part += 1) {
      const place = join(this.home, PARTS, String(part));
      try {
        writeFileSync(place, threadId, { flag: "wx" });
        return part;
      } catch {
        if (readFileSync(place, "utf8") === threadId) return part;
      }
    }
  }

  /** Lines that agents wrote, by their text: the thread and the file. */
  #written(): Map<string, { threadId: string; file: string }> {
    const path = join(this.home, WRITTEN);
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
    return new Map(lines.map((line) => JSON.parse(line) as [string, { threadId: string; file: string }]));
  }

  /** The thread whose change is being applied, if one is. */
  appliedNow(): string | undefined {
    const threads = existsSync(this.copies) ? readdirSync(this.copies) : [];
    return threads.find((threadId) => {
      const place = join(this.copies, threadId);
      if (threadId.includes(".")) return false;
      // Its files change from now on.
      return readdirSync(place).some(
        (name) => name.startsWith("apply-") && existsSync(join(place, name, "plan.json")),
      );
    });
  }

  /** Reports what is wrong with the folder. `applied`: files by the thread whose change of them was applied. */
  *problems(applied: ReadonlyMap<string, ReadonlySet<string>>): Generator<string> {
    const written = this.#written();
    for (const file of FILES) {
      const lines = readFileSync(join(this.folder, file), "utf8").split("\n");
      for (const [at, line] of lines.entries()) {
        const edit = this.#edits.get(`${file} ${at}`);
        if (edit !== undefined && line !== edit)
          yield `edit-kept: line ${at} of ${file} is "${line}", not "${edit}"`;
        const { threadId } = written.get(line) ?? {};
        if (threadId !== undefined && applied.get(threadId)?.has(file) !== true)
          yield `proposal: ${file} has a line of ${threadId}, whose change was not applied`;
        if (threadId === undefined && edit === undefined && line !== "" && line !== `line ${at}`)
          yield `proposal: line ${at} of ${file} is "${line}", which nobody wrote`;
      }
    }
    // The newest line of each place in an applied file is in the folder.
    for (const [threadId, files] of applied)
      for (const file of files) {
        const own = [...written].filter(([, one]) => one.threadId === threadId && one.file === file);
        const text = readFileSync(join(this.folder, file), "utf8");
        if (own.length > 0 && !own.some(([line]) => text.includes(line)))
          yield `proposal: ${file} has no line of ${threadId}, whose change was applied`;
      }
  }

  close(): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

function replaceLine(path: string, at: number, text: string): void {
  const lines = readFileSync(path, "utf8").split("\n");
  lines[at] = text;
  writeFileSync(path, lines.join("\n"));
}
