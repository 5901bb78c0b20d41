/** One changed file: its places as a person sees them, and what is made of the file when some of them are applied. */
import { createHash } from "node:crypto";
import { STARTING_PLACES } from "../backends/sandbox/starting-places.ts";
import { defined } from "../core/defined.ts";
import { linesToCompare } from "../core/diff.ts";
import { type Hunk, closeHunks, hunksBetween } from "../core/hunks.ts";
import { mergeHunks, opposedHunks } from "../core/merge.ts";
import type { ProposedFile, ProposedPlace } from "../runs/proposals.ts";
import { type Content, isSameContent } from "./content.ts";
import type { Encoding, FileText } from "./file-text.ts";
import { bytesOf, commonEncoding, isLongText, readText, shown } from "./file-text.ts";
import { MOST_CHARS, placeDiff, textOf } from "./place-diff.ts";
import type { Manifest, Sides } from "./workspace-copy.ts";

/** Lines between two hunks that keep them apart as two places. */
const BETWEEN = 6;
/** A file with more places has one. */
const MOST_PLACES = 500;

interface Lines {
  base: string[];
  encoding: Encoding;
  /** Hunks of the agent, by place. */
  places: Hunk[][];
  /** Hunks that the folder has since; `undefined`: the folder has no text there any more. */
  folder: Hunk[] | undefined;
}

const edits = new WeakMap<Sides, Lines | "none">();

/** A file that is changed in its lines only; `undefined` for any other. Compares each once. */
function editOf(sides: Sides): Lines | undefined {
  const known = edits.get(sides) ?? compared(sides) ?? "none";
  edits.set(sides, known);
  return known === "none" ? undefined : known;
}

/** Compares the lines of a file beforehand, in a turn of its own. */
export const compareLines = (sides: Sides): void => void editOf(sides);

function compared({ base, proposed, folder }: Sides): Lines | undefined {
  const [before, after] = [readText(base), readText(proposed)];
  if (before === undefined || after === undefined || !hasSameMode(base, proposed)) return undefined;
  const own = commonEncoding([before, after]);
  if (own === undefined) return undefined;
  const lines = linesToCompare(before.text);
  const now = isSameContent(folder.content, base) ? before : readText(folder.content);
  const encoding = now && commonEncoding([before, after, now]);
  const hunks = hunksBetween(lines, linesToCompare(after.text));
  const places = closeHunks(hunks, BETWEEN);
  return {
    base: lines,
    encoding: encoding ?? own,
    places: places.length > MOST_PLACES ? [hunks] : places,
    folder: now && encoding && (now === before ? [] : hunksBetween(lines, linesToCompare(now.text))),
  };
}

const hasSameMode = (a: Content | undefined, b: Content | undefined): boolean =>
  a?.kind === "file" && b?.kind === "file" && a.executable === b.executable;

/** `room`: characters for its diff. `Infinity`: its places have all of it, for whoever displays it piece by piece. */
export function proposedFile(
  sides: Sides,
  { decided }: Pick<Manifest, "decided">,
  room = MOST_CHARS,
): ProposedFile {
  const { path, from, base, proposed, ignored } = sides;
  const version = versionOf(sides);
  const places = placesOf(sides, room);
  const sum = (of: "added" | "removed") => places.reduce((total, place) => total + place[of], 0);
  const before = Object.hasOwn(decided, path) ? decided[path] : undefined;
  const isOpposed = editOf(sides)?.folder === undefined && !isSameContent(sides.folder.content, base);
  const conflict = isOpposed ? whatFolderHas(sides) : undefined;
  return {
    path,
    change: changeOf(sides),
    version,
    added: sum("added"),
    removed: sum("removed"),
    places,
    notes: notesOf(sides),
    ...defined({ from, conflict, unshown: unshownOf(sides, places) }),
    ...(ignored ? { ignored } : {}),
    ...(proposed?.kind === "other" ? { stays: true as const } : {}),
    ...(before?.version === version && before.how !== "branch"
      ? { decided: { how: before.how, ...defined({ message: before.message }) } }
      : {}),
  };
}

/** Tells what kind of content would be written that neither places nor notes show. */
function unshownOf({ base, proposed }: Sides, places: readonly ProposedPlace[]): ProposedFile["unshown"] {
  if (proposed?.kind !== "file" || isSameContent(base, proposed)) return undefined;
  if (readText(proposed) === undefined) return isLongText(proposed.bytes) ? "text" : "bytes";
  return places.some(({ isPart }) => isPart) ? "text" : undefined;
}

function changeOf({ from, base, proposed }: Sides): ProposedFile["change"] {
  if (from !== undefined) return "renamed";
  return base === undefined ? "added" : proposed === undefined ? "deleted" : "edited";
}

/** Names what is proposed, and what a person sees it compared with: where the folder is in the way, that too. */
export function versionOf(sides: Sides): string {
  const { from, base, proposed, folder } = sides;
  const hash = createHash("sha256");
  if (from !== undefined) hash.update(`from ${from.length}\n${from}`);
  for (const content of [base, proposed, ...(isInTheWay(sides) ? [folder.content] : [])]) {
    if (content?.kind === "file")
      hash.update(`file ${content.executable} ${content.bytes.length}\n`).update(content.bytes);
    else if (content?.kind === "link") hash.update(`link ${content.target.length}\n${content.target}`);
    else hash.update(content === undefined ? "nothing\n" : `other ${content.why}\n`);
  }
  return hash.digest("base64url").slice(0, 22);
}

function isInTheWay(sides: Sides): boolean {
  if (isSameContent(sides.folder.content, sides.base)) return false;
  const { folder, places } = editOf(sides) ?? { folder: undefined, places: [] };
  return folder === undefined || opposedHunks(folder, places.flat()).length > 0;
}

/** The places of an edit. A new or deleted text is one place, and so is one that replaces something else. */
function placesOf(sides: Sides, room: number): ProposedPlace[] {
  const edit = editOf(sides);
  if (edit !== undefined) {
    let left = room;
    return edit.places.map((hunks) => {
      const place = placeOf(sides, edit, hunks, left);
      left -= place.diff.length;
      return place;
    });
  }
  const long = [sides.base, sides.proposed].flatMap((one) =>
    one?.kind === "file" && isLongText(one.bytes) ? one.bytes.toString() : [],
  );
  if (room === Infinity && long.length > 0) return [{ diff: long.join("\n\n"), added: 0, removed: 0 }];
  const texts = textsOf(sides);
  if (texts === undefined) return [];
  const [old = [], lines = []] = texts.map(({ text, encoding }) => linesToCompare(shown(text, encoding)));
  return [
    placeDiff(sides, old, [{ start: 0, end: old.length, lines }], { room, isNew: sides.base === undefined }),
  ];
}

function placeOf(
  sides: Sides,
  { base, encoding, folder = [] }: Lines,
  hunks: readonly Hunk[],
  room: number,
): ProposedPlace {
  const place = placeDiff({ ...sides, encoding }, base, hunks, { room });
  const inTheWay = opposedHunks(folder, hunks);
  if (inTheWay.length === 0) return place;
  return { ...place, conflict: shown(inTheWay.flatMap(({ lines }) => lines).join("\n"), encoding) };
}

/** The text before, empty if there was none, and the text after. Returns undefined if the file after the change is not a text. */
function textsOf({ base, proposed }: Sides): FileText[] | undefined {
  const after = proposed === undefined ? NO_TEXT : readText(proposed);
  const before = readText(base) ?? (proposed === undefined && base !== undefined ? undefined : NO_TEXT);
  return before && after && [before, after];
}

const NO_TEXT: FileText = { text: "", encoding: "ascii" };

function whatFolderHas({ folder: { content } }: Sides): string {
  if (content === undefined) return "The file was deleted in the folder since the copy was made.";
  if (content.kind === "other") return `In the folder it is ${content.why}.`;
  return "The file was changed in the folder since the copy was made.";
}

function notesOf(sides: Sides): string[] {
  const { path, base, proposed } = sides;
  const encoding = commonEncoding(textsOf(sides) ?? []);
  const names = path.split("/");
  const starts = STARTING_PLACES.find(({ name }) => names.includes(name))?.starts;
  const [was, is] = [base, proposed].map((one) => one?.kind === "file" && one.executable);
  return [
    ...(proposed?.kind === "link" ? [`link to ${proposed.target}`] : []),
    ...(proposed?.kind === "other" ? [`${proposed.why}: it stays in the copy`] : []),
    ...(proposed?.kind === "file" && readText(proposed) === undefined && !isSameContent(base, proposed)
      ? [`${isLongText(proposed.bytes) ? "long text" : "not a text"}, ${sizeText(proposed.bytes)}`]
      : []),
    ...(base?.kind === "link" && proposed !== undefined ? [`replaces a link to ${base.target}`] : []),
    ...(base?.kind === "file" && readText(base) === undefined && textsOf(sides) !== undefined
      ? [`replaces ${sizeText(base.bytes)}, which are not shown`]
      : []),
    ...(encoding === undefined ? ["its encoding changes"] : []),
    ...(encoding === "bytes" && !isSameContent(base, proposed) ? ["not UTF-8, shown as Windows-1252"] : []),
    ...(is === true && was !== true ? ["executable"] : []),
    ...(was === true && is === false && proposed !== undefined ? ["no longer executable"] : []),
    ...(starts === undefined ? [] : [`starts programs: ${starts}`]),
  ];
}

const sizeText = ({ length }: Buffer): string => `${length.toLocaleString("en")} bytes`;

export interface AppliedFile {
  folder: Content | undefined;
  /** The file as far as it is applied. */
  base: Content | undefined;
  isWhole: boolean;
}

/**
 * Applies a file whole, or some of its places. `over`: the proposed lines replace those that are in the way.
 * `undefined`: the folder is in the way.
 */
export function applied(
  sides: Sides,
  chosen: "all" | readonly number[],
  over: boolean,
): AppliedFile | undefined {
  const { base, proposed, folder } = sides;
  const edit = editOf(sides);
  const count = edit?.places.length ?? 1;
  const isWhole = chosen === "all" || new Set(chosen).size >= count;
  if (edit === undefined || edit.folder === undefined || proposed?.kind !== "file") {
    const mayWrite = over || isSameContent(folder.content, base);
    return mayWrite && isWhole && proposed?.kind !== "other"
      ? { folder: proposed, base: proposed, isWhole: true }
      : undefined;
  }
  const hunks = edit.places.filter((_, index) => chosen === "all" || chosen.includes(index)).flat();
  const opposed = new Set(over ? opposedHunks(edit.folder, hunks) : []);
  const others = edit.folder.filter((one) => !opposed.has(one));
  const merged = mergeHunks(edit.base, [...others, ...hunks]);
  const own = mergeHunks(edit.base, hunks);
  if (merged === undefined || own === undefined) return undefined;
  const fileOf = (lines: readonly string[], { executable }: { executable: boolean }): Content => ({
    kind: "file",
    bytes: bytesOf(textOf(lines), edit.encoding),
    executable,
  });
  const modeOf = folder.content?.kind === "file" ? folder.content : proposed;
  return { folder: fileOf(merged, modeOf), base: fileOf(own, proposed), isWhole };
}
