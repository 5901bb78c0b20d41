/** Shows a call to a person before they decide on it. */
import type { Backend, Failure, FileInfo, ResolveOptions } from "../backends/backend.ts";
import type { FileText } from "../backends/encoding.ts";
import { errors } from "../backends/errors.ts";
import { parseContent } from "../backends/file-data.ts";
import { ownTurn } from "../core/concurrency.ts";
import { displayMarked, displayName, firstSentence, headOf, tailOf } from "../core/text.ts";
import { defined } from "../core/unknown.ts";
import { type TextChange, wholeDiff, wholeReplacement } from "./diff-preview.ts";
import type { BoundPreview, ToolResult } from "./tool.ts";
import type { CallPreview } from "./request.ts";

/** Content of a file at the moment a person is asked about changing it. */
export type CurrentText = { entry?: FileInfo | undefined } & (
  | { kind: "absent" }
  | ({ kind: "text"; version: string | undefined } & FileText)
  /** `failure`: why no change of the text is possible, unless that may end by itself. */
  | { kind: "unreadable"; reason: string; failure?: Failure }
);

/** Reads the file through the backend, unless it is too large to compare. */
export async function currentText(path: string, backend: Backend, signal: AbortSignal): Promise<CurrentText> {
  const [first] = (await backend.ls(path, { signal })).files ?? [];
  const entry = first?.path === path ? first : undefined;
  if ((entry?.size ?? 0) > 10 * 1024 * 1024)
    return { kind: "unreadable", reason: "the file is too large to compare", entry };
  const { data, error, code, version } = await backend.readRaw(path, { signal });
  if (code === "not_found") return { kind: "absent" };
  if (error !== undefined || !data) {
    const mayEnd = /^(?:io|timeout|aborted|backend_error|unsupported)$/.test(code ?? "io");
    const failure = mayEnd ? {} : { failure: { error, code } };
    return { kind: "unreadable", reason: displayName(error ?? "no content"), entry, ...failure };
  }
  const known = parseContent(path, data);
  if (known.ok && known.content.kind === "text") return { ...known.content, version, entry };
  return { kind: "unreadable", reason: "the file is binary", entry, failure: errors.binaryEdit(path) };
}

/** Adds to a preview what else a person has to know about the file. */
export function withRemarks(shown: BoundPreview, { entry }: CurrentText): BoundPreview {
  const { read_only: isReadOnly = false, names = 1 } = entry ?? {};
  const remarks = [
    ...(isReadOnly ? ["this file is read-only"] : []),
    ...(names > 1 ? [`this file has ${names} names; the change applies to all of them`] : []),
  ];
  const summary = [shown.summary, ...remarks].join("; ");
  return { ...shown, summary, ...(isReadOnly ? { evenReadOnly: true } : {}) };
}

/** A path that a call names, and the place where it leads: an approval is bound to it. */
export interface Destination {
  place: string | undefined;
  /** For a summary: a long path is shortened in its middle. */
  name: string;
  /** The place in full, as a person is shown it. */
  shown: string;
}

export async function resolveDestination(
  path: string,
  backend: Backend,
  options: ResolveOptions = {},
): Promise<Destination> {
  const place = backend.followLinks === undefined ? path : await backend.followLinks(path, options);
  const isLed = place !== undefined && place !== path;
  const name = isLed ? `${shortPath(path)}, which leads to ${shortPath(place)}` : shortPath(path);
  return { place, name, shown: displayName(place ?? path) };
}

/** A path on one line, with its beginning and its end. */
function shortPath(path: string): string {
  const shown = displayName(path);
  return shown.length <= MAX_PATH ? shown : `${headOf(shown, MAX_PATH / 2)}…${tailOf(shown, MAX_PATH / 2)}`;
}

/** Two such paths and the words around them fit into one summary. */
const MAX_PATH = 110;

interface ChangeLook {
  summary: string;
  change: TextChange;
  to: Destination;
}

/** A change of text as a diff, bound to where it is made and to every line of it; made in turns of its own. */
export async function diffPreview({ summary, change, to }: ChangeLook): Promise<BoundPreview> {
  await ownTurn();
  const { diff, isWhole, whole, effect } = wholeDiff(change);
  await ownTurn();
  return preview("diff", { summary, to, detail: diff, isWhole, whole, effect: effect() });
}

/** Shows the replaced text alone if the change is too long to be shown in its place in the file. */
export async function editPreview(
  look: ChangeLook,
  replaced: TextChange,
  everywhere: boolean,
): Promise<BoundPreview> {
  const inFile = await diffPreview(look);
  const { isPart, whole: _whole, ...shown } = inFile;
  if (isPart === undefined) return inFile;
  const { diff: detail, isWhole } = wholeReplacement(replaced, everywhere);
  return isWhole ? { ...shown, detail } : inFile;
}

/** A call that cannot be shown as a diff: its arguments. */
export function argumentsPreview(
  summary: string,
  args: Record<string, unknown>,
  to?: Destination,
): BoundPreview {
  const pretty = JSON.stringify(args, null, 2);
  const missing = pretty.length - MAX_ARGUMENT_CHARS;
  const detail =
    missing > 0 ? `${headOf(pretty, MAX_ARGUMENT_CHARS)}\n[${missing} more characters not shown]` : pretty;
  const isWhole = missing <= 0;
  return preview("arguments", { summary, to, detail: displayMarked(detail), isWhole, effect: null });
}

/** Shows a call that can only fail. Without `to`, its arguments alone are the reason. */
export function failing(
  what: string,
  args: Record<string, unknown>,
  { failure, to }: { failure: ToolResult; to?: Destination },
): BoundPreview {
  const text = typeof failure.content === "string" ? failure.content : "";
  const why = firstSentence(text.replace(/^Error: /, ""), 300).replace(/\.$/, "");
  return { ...argumentsPreview(`${what}; it would fail: ${why}`, args, to), failure };
}

/** The one place where previews are made. `detail` is in its displayed form. */
export const preview = (
  kind: CallPreview["kind"],
  {
    summary,
    to,
    detail,
    isWhole,
    whole,
    effect,
  }: Pick<CallPreview, "summary" | "detail"> & {
    to: Destination | undefined;
    isWhole: boolean;
    whole?: string | undefined;
    effect: unknown;
  },
): BoundPreview => ({
  kind,
  summary: displayName(summary),
  ...(to === undefined ? {} : { destination: to.shown }),
  detail,
  ...(isWhole ? {} : { isPart: true as const, ...defined({ whole }) }),
  place: to?.place,
  effect,
});

const MAX_ARGUMENT_CHARS = 20_000;
