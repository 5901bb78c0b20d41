/** One changed file: its hunks as a person sees them, and the file after some of them are applied. */
import { createHash } from "node:crypto";
import { type TextEncoding, isOlder } from "../backends/encoding.ts";
import { startsAt } from "../backends/sandbox/starting-places.ts";
import { byIdentity } from "../core/by-identity.ts";
import { defined } from "../core/unknown.ts";
import { linesToCompare } from "../core/diff.ts";
import { type Hunk as LineChange, closeHunks, hunksBetween } from "../core/hunks.ts";
import { mergeHunks, opposedHunks } from "../core/merge.ts";
import type { ProposedFile, ProposedPlace } from "../runs/proposals.ts";
import { type Content, isSameContent } from "./content.ts";
import type { FileText } from "./file-text.ts";
import { bytesOfText, commonEncoding, isLongText, readText, shown } from "./file-text.ts";
import { MOST_CHARS, hunkDiff, joinLines } from "./file-text.ts";
import type { Manifest, Sides } from "./workspace-copy.ts";

interface Lines {
  base: string[];
  encoding: TextEncoding;
  /** Changes of the agent, by hunk. */
  hunks: LineChange[][];
  /** Changes in the folder since the copy was made. Undefined if the folder has no text there any more. */
  folder: LineChange[] | undefined;
}

/** A file that is changed in its lines only; `undefined` for any other. Compares each once, which takes a while. */
export const compareLines = byIdentity(({ base, proposed, folder }: Sides): Lines | undefined => {
  const [before, after] = [readText(base), readText(proposed)];
  const hasSameMode =
    base?.kind === "file" && proposed?.kind === "file" && base.executable === proposed.executable;
  if (before === undefined || after === undefined || !hasSameMode) return undefined;
  const own = commonEncoding([before, after]);
  if (own === undefined) return undefined;
  const lines = linesToCompare(before.text);
  const now = isSameContent(folder.content, base) ? before : readText(folder.content);
  const encoding = now && commonEncoding([before, after, now]);
  const changes = hunksBetween(lines, linesToCompare(after.text));
  const hunks = closeHunks(changes, 6);
  return {
    base: lines,
    encoding: encoding ?? own,
    // A file with more hunks is shown as one.
    hunks: hunks.length > 500 ? [changes] : hunks,
    folder: now && encoding && (now === before ? [] : hunksBetween(lines, linesToCompare(now.text))),
  };
});

/** `room`: characters for its diff. `Infinity`: its hunks have all of it, for whoever displays it piece by piece. */
export function proposedFile(
  sides: Sides,
  { decided }: Pick<Manifest, "decided">,
  room = MOST_CHARS,
): ProposedFile {
  const { path, from, base, proposed, folder, ignored } = sides;
  const { content } = folder;
  const version = versionOf(sides);
  const hunks = proposedHunks(sides, room);
  const sum = (of: "added" | "removed") => hunks.reduce((total, hunk) => total + hunk[of], 0);
  const before = Object.hasOwn(decided, path) ? decided[path] : undefined;
  const isOpposed = compareLines(sides)?.folder === undefined && !isSameContent(content, base);
  const state =
    content?.kind === "other"
      ? `In the folder it is ${content.why}.`
      : `The file was ${content ? "changed" : "deleted"} in the folder since the copy was made.`;
  const change = base === undefined ? "added" : proposed === undefined ? "deleted" : "edited";
  return {
    path,
    change: from === undefined ? change : "renamed",
    version,
    added: sum("added"),
    removed: sum("removed"),
    places: hunks,
    notes: notesOf(sides),
    ...defined({ from, conflict: isOpposed ? state : undefined, unshown: findUnshown(sides, hunks) }),
    ...(ignored ? { ignored } : {}),
    ...(proposed?.kind === "other" ? { stays: true as const } : {}),
    ...(before?.version === version && before.how !== "branch"
      ? { decided: { how: before.how, ...defined({ message: before.message }) } }
      : {}),
  };
}

/** The kind of content that would be written and that neither hunks nor notes show. */
function findUnshown({ base, proposed }: Sides, hunks: readonly ProposedPlace[]): ProposedFile["unshown"] {
  if (proposed?.kind !== "file" || isSameContent(base, proposed)) return undefined;
  if (readText(proposed) === undefined) return isLongText(proposed.bytes) ? "text" : "bytes";
  return hunks.some(({ isPart }) => isPart) ? "text" : undefined;
}

/** A digest of the proposed content and the one it is compared with; also of the folder's if that is in the way. */
export function versionOf(sides: Sides): string {
  const { from, base, proposed, folder } = sides;
  const hasChanged = !isSameContent(folder.content, base);
  const edit = hasChanged ? compareLines(sides) : undefined;
  const isInTheWay = hasChanged && (!edit?.folder || opposedHunks(edit.folder, edit.hunks.flat()).length > 0);
  const hash = createHash("sha256");
  if (from !== undefined) hash.update(`from ${from.length}\n${from}`);
  for (const content of [base, proposed, ...(isInTheWay ? [folder.content] : [])]) {
    if (content?.kind === "file")
      hash.update(`file ${content.executable} ${content.bytes.length}\n`).update(content.bytes);
    else if (content?.kind === "link") hash.update(`link ${content.target.length}\n${content.target}`);
    else hash.update(content === undefined ? "nothing\n" : `other ${content.why}\n`);
  }
  return hash.digest("base64url").slice(0, 22);
}

/** The hunks of an edit. A new or deleted text is one hunk, and so is one that replaces something else. */
function proposedHunks(sides: Sides, room: number): ProposedPlace[] {
  const edit = compareLines(sides);
  if (edit !== undefined) {
    const { base, encoding, folder = [] } = edit;
    let left = room;
    return edit.hunks.map((changes) => {
      const hunk = hunkDiff({ ...sides, encoding }, base, changes, { room: left });
      left -= hunk.diff.length;
      const inTheWay = opposedHunks(folder, changes);
      if (inTheWay.length === 0) return hunk;
      return { ...hunk, conflict: shown(inTheWay.flatMap(({ lines }) => lines).join("\n"), encoding) };
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
    hunkDiff(sides, old, [{ start: 0, end: old.length, lines }], { room, isNew: sides.base === undefined }),
  ];
}

/** The text before, empty if there was none, and the text after. Returns undefined if the file after the change is not a text. */
function textsOf({ base, proposed }: Sides): FileText[] | undefined {
  const after = proposed === undefined ? NO_TEXT : readText(proposed);
  const before = readText(base) ?? (proposed === undefined && base !== undefined ? undefined : NO_TEXT);
  return before && after && [before, after];
}

const NO_TEXT: FileText = { text: "", encoding: "ascii" };

function notesOf(sides: Sides): string[] {
  const { path, base, proposed } = sides;
  const encoding = commonEncoding(textsOf(sides) ?? []);
  const starts = startsAt(path);
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
    ...(encoding !== undefined && isOlder(encoding) && !isSameContent(base, proposed)
      ? [`not UTF-8, shown as ${encoding.toUpperCase()}`]
      : []),
    ...(is === true && was !== true ? ["executable"] : []),
    ...(was === true && is === false && proposed !== undefined ? ["no longer executable"] : []),
    ...(starts === undefined ? [] : [`can run programs (${starts})`]),
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
 * Applies a file whole, or some of its hunks. `over`: the proposed lines replace those that are in the way.
 * Returns undefined if the folder is in the way.
 */
export function applied(
  sides: Sides,
  chosen: "all" | readonly number[],
  over: boolean,
): AppliedFile | undefined {
  const { base, proposed, folder } = sides;
  const edit = compareLines(sides);
  const isWhole = chosen === "all" || new Set(chosen).size >= (edit?.hunks.length ?? 1);
  if (edit === undefined || edit.folder === undefined || proposed?.kind !== "file") {
    const mayWrite = over || isSameContent(folder.content, base);
    return mayWrite && isWhole && proposed?.kind !== "other"
      ? { folder: proposed, base: proposed, isWhole: true }
      : undefined;
  }
  const changes = edit.hunks.filter((_, index) => chosen === "all" || chosen.includes(index)).flat();
  const opposed = new Set(over ? opposedHunks(edit.folder, changes) : []);
  const others = edit.folder.filter((one) => !opposed.has(one));
  const merged = mergeHunks(edit.base, [...others, ...changes]);
  const own = mergeHunks(edit.base, changes);
  if (merged === undefined || own === undefined) return undefined;
  const fileOf = (lines: readonly string[], { executable }: { executable: boolean }): Content => {
    return { kind: "file", bytes: bytesOfText(joinLines(lines), edit.encoding), executable };
  };
  const modeOf = folder.content?.kind === "file" ? folder.content : proposed;
  return { folder: fileOf(merged, modeOf), base: fileOf(own, proposed), isWhole };
}
