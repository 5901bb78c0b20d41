import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const CALLED = "pwrite64,ftruncate,fdatasync,fsync,write,rename,link";

/** What starts a program so that all it does to files, and says, is written to `file`. */
export const traced = (file: string): string[] =>
  `strace -f -y -xx -s 1000000 --seccomp-bpf -e trace=${CALLED} -o`.split(" ").concat(file);

/** What a traced program did, in order. Names of files are without their folder. */
export type TracedEvent =
  | { kind: "write"; file: string; offset: number; data: Buffer }
  | { kind: "truncate"; file: string; length: number }
  /** `began`: how many events there were when it was asked for; what was written later it need not have met. */
  | { kind: "sync"; file: string; began: number }
  | { kind: "put"; file: string }
  /** A line of JSON, wherever it was written to. */
  | { kind: "said"; text: string };

const STRING = String.raw`"((?:\\x[0-9a-f]{2})*)"`;
const FILE = String.raw`\d+<((?:\\x[0-9a-f]{2})*)>`;
const CALLS: readonly [RegExp, (...groups: string[]) => TracedEvent | undefined][] = [
  [
    new RegExp(`^pwrite64\\(${FILE}, ${STRING}, \\d+, (\\d+)`),
    (file = "", data = "", offset = "") => ({
      kind: "write",
      file: nameOf(file),
      offset: Number(offset),
      data: bytes(data),
    }),
  ],
  [
    new RegExp(`^ftruncate\\(${FILE}, (\\d+)`),
    (file = "", length = "") => ({ kind: "truncate", file: nameOf(file), length: Number(length) }),
  ],
  [
    new RegExp(`^(?:fsync|fdatasync)\\(${FILE}`),
    (file = "") => ({ kind: "sync", file: nameOf(file), began: 0 }),
  ],
  [
    new RegExp(`^(?:rename|link)\\(${STRING}, ${STRING}`),
    (_from, to = "") => ({ kind: "put", file: nameOf(to) }),
  ],
  [
    new RegExp(`^write\\(${FILE}, ${STRING}`),
    (_file, data = "") => {
      const text = bytes(data).toString();
      return text.startsWith("{") ? { kind: "said", text } : undefined;
    },
  ],
];

const bytes = (escaped: string): Buffer => Buffer.from(escaped.replaceAll("\\x", ""), "hex");
const nameOf = (escaped: string): string => basename(bytes(escaped).toString());

/** Reads a trace. What is synced counts when the call has come back, everything else when it begins. */
export function readTrace(file: string): TracedEvent[] {
  const events: TracedEvent[] = [];
  const unfinished = new Map<string, { text: string; began: number }>();
  for (const line of readFileSync(file, "latin1").split("\n")) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const isSync = /^f(?:data)?sync\(/.test(text);
    if (isSync && text.endsWith("<unfinished ...>")) {
      unfinished.set(thread, { text, began: events.length });
      continue;
    }
    const asked = /^<\.\.\. f(?:data)?sync resumed>/.test(text) ? unfinished.get(thread) : undefined;
    const call = asked?.text ?? text;
    for (const [pattern, read] of CALLS) {
      const match = pattern.exec(call);
      const event = match === null ? undefined : read(...match.slice(1));
      if (event?.kind === "sync") event.began = asked?.began ?? events.length;
      if (event !== undefined) events.push(event);
    }
  }
  return events;
}

/** A disk writes sectors whole. */
const SECTOR = 512;

/**
 * Makes the files of a folder as a power cut after `events` could leave them: all that was synced, and of the rest
 * what `survives` says, write by write: everything, nothing, or some of its sectors.
 */
export function afterPowerCut(
  events: readonly TracedEvent[],
  files: readonly string[],
  folder: string,
  survives: () => boolean,
): void {
  for (const file of files) {
    const synced = syncedUntil(events, file);
    // Of its full size from the start: one that grew with each sector would be copied thousands of times.
    const content = Buffer.alloc(Math.max(0, ...events.map((event) => endIn(file, event))));
    let length = 0;
    for (const [index, event] of events.entries()) {
      if (!("file" in event) || event.file !== file) continue;
      if (event.kind === "truncate" && (index < synced || survives())) {
        content.fill(0, event.length);
        length = event.length;
      }
      if (event.kind !== "write") continue;
      const { offset, data } = event;
      for (let at = 0; at < data.length; at += SECTOR) {
        if (index >= synced && !survives()) continue;
        const end = Math.min(at + SECTOR, data.length);
        data.copy(content, offset + at, at, end);
        length = Math.max(length, offset + end);
      }
    }
    writeFileSync(join(folder, file), content.subarray(0, length));
  }
}

/** What was done to the file before this one of the events is on the disk. */
export const syncedUntil = (events: readonly TracedEvent[], file: string): number =>
  Math.max(
    0,
    ...events.flatMap((event) => (event.kind === "sync" && event.file === file ? [event.began] : [])),
  );

/** How long the file has to be for what the event does to it. */
function endIn(file: string, event: TracedEvent): number {
  if (!("file" in event) || event.file !== file) return 0;
  if (event.kind === "write") return event.offset + event.data.length;
  return event.kind === "truncate" ? event.length : 0;
}
