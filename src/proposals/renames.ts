/** Finds files that have another path in the copy: a deleted file and a new one with the same text, or much of it. */
import { createHash } from "node:crypto";
import { ownTurn } from "../core/concurrency.ts";
import { groupBy } from "../core/group-by.ts";
import { readText } from "./file-text.ts";
import type { Sides } from "./workspace-copy.ts";

/** Lines that more deleted files have are not compared: they could be from any of these files. */
const MOST_HAVING = 20;

/** A deleted or a new file that may be one end of a rename. */
interface End {
  sides: Sides;
  bytes: Buffer;
  /** Only ends of one kind make a rename. */
  kind: string;
}

interface Pair {
  old: End;
  now: End;
}

/** The files with each rename as one: the file at its new path, `from` the old one. */
export async function withRenames(all: readonly Sides[]): Promise<Sides[]> {
  const deleted = all.filter(
    ({ base, proposed, folder }) =>
      base?.kind === "file" && proposed === undefined && folder.content?.kind === "file",
  );
  const added = all.filter(
    ({ base, proposed, folder }) =>
      base === undefined && proposed?.kind === "file" && folder.content === undefined,
  );
  const renames = new Renames(deleted.flatMap(endOf), added.flatMap(endOf));
  // Files in a folder that was moved have the same names in it.
  for (const names of [2, 1, 0]) await renames.pairEqual(names);
  await renames.pairSimilar();
  const olds = new Map([...renames.found].map(({ old, now }) => [now.sides, old.sides]));
  const gone = new Set(olds.values());
  return all.flatMap((sides) => {
    const old = olds.get(sides);
    if (old === undefined) return gone.has(sides) ? [] : [sides];
    return [{ ...sides, from: old.path, base: old.base, folder: old.folder }];
  });
}

function endOf(sides: Sides): End[] {
  const file = sides.proposed ?? sides.base;
  if (file?.kind !== "file" || file.bytes.length === 0) return [];
  return [{ sides, bytes: file.bytes, kind: `${sides.ignored} ${file.executable}` }];
}

class Renames {
  readonly found = new Set<Pair>();
  readonly #deleted: Set<End>;
  readonly #added: Set<End>;

  constructor(deleted: readonly End[], added: readonly End[]) {
    [this.#deleted, this.#added] = [new Set(deleted), new Set(added)];
  }

  /** Pairs files with the same bytes, whose paths end with the same names. */
  async pairEqual(names: number): Promise<void> {
    const keyOf = ({ sides: { path }, bytes }: End): string =>
      [bytes.length, ...(names === 0 ? [] : path.split("/").slice(-names))].join("/");
    for (const [deleted, added] of this.#groups(keyOf)) {
      const olds = await byBytes(deleted);
      for (const [digest, news] of await byBytes(added))
        for (const [index, old] of (olds.get(digest) ?? []).entries()) this.#pair(old, news[index]);
    }
  }

  /** Pairs texts that have much in common, the most similar first, unless they are too many. */
  async pairSimilar(): Promise<void> {
    for (const [deleted, added] of this.#groups(() => "")) {
      const size = [...deleted, ...added].reduce((sum, { bytes }) => sum + bytes.length, 0);
      if (size > 32 * 1024 * 1024) continue;
      const olds = new Texts();
      for (const old of deleted) await olds.add(old);
      const alike: (Pair & { part: number })[] = [];
      for (const now of added) alike.push(...(await olds.similarTo(now)));
      for (const { old, now } of alike.toSorted((a, b) => b.part - a.part)) this.#pair(old, now);
    }
  }

  /** Ends without a pair that have the same key, of both sides. */
  #groups(keyOf: (end: End) => string): [End[], End[]][] {
    const keyed = (end: End): string => `${end.kind} ${keyOf(end)}`;
    const added = groupBy(this.#added, keyed);
    const both = [...groupBy(this.#deleted, keyed)].filter(([key]) => added.has(key));
    return both.map(([key, deleted]) => [deleted, added.get(key) ?? []]);
  }

  #pair(old: End, now: End | undefined): void {
    if (now === undefined || !this.#deleted.has(old) || !this.#added.has(now)) return;
    this.found.add({ old, now });
    this.#deleted.delete(old);
    this.#added.delete(now);
  }
}

/** The lines of a text, and how often it has each. */
type Lines = ReadonlyMap<string, number>;

/** Texts by their lines: those that are similar to another one are found without comparing it with each of them. */
class Texts {
  readonly #lines = new Map<End, Lines>();
  readonly #having = new Map<string, End[]>();

  async add(end: End): Promise<void> {
    const lines = await linesOf(end);
    this.#lines.set(end, lines);
    for (const line of lines.keys()) {
      const having = this.#having.get(line);
      if (having === undefined) this.#having.set(line, [end]);
      else if (having.length <= MOST_HAVING) having.push(end);
    }
  }

  async similarTo(now: End): Promise<(Pair & { part: number })[]> {
    const lines = await linesOf(now);
    const shared = new Map<End, number>();
    for (const line of lines.keys()) {
      const having = this.#having.get(line) ?? [];
      if (having.length > MOST_HAVING) continue;
      for (const old of having) shared.set(old, (shared.get(old) ?? 0) + line.length);
    }
    return [...shared]
      .toSorted((a, b) => b[1] - a[1])
      .slice(0, 5)
      .map(([old]) => {
        const before = this.#lines.get(old);
        let common = 0;
        for (const [line, count] of lines) common += Math.min(count, before?.get(line) ?? 0) * line.length;
        return { old, now, part: common / Math.max(old.bytes.length, now.bytes.length) };
      })
      .filter(({ part }) => part >= 0.5);
  }
}

/** The lines of a text, and none of a binary file. */
async function linesOf({ sides: { base, proposed }, bytes }: End): Promise<Lines> {
  await ownTurn();
  const lines = new Map<string, number>();
  if (readText(proposed ?? base) === undefined) return lines;
  for (const line of bytes.toString("latin1").split("\n"))
    lines.set(`${line}\n`, (lines.get(`${line}\n`) ?? 0) + 1);
  return lines;
}

async function byBytes(ends: readonly End[]): Promise<Map<string, End[]>> {
  const digests = new Map<End, string>();
  for (const end of ends) {
    await ownTurn();
    digests.set(end, createHash("sha256").update(end.bytes).digest("base64url"));
  }
  return groupBy(ends, (end) => digests.get(end) ?? "");
}
