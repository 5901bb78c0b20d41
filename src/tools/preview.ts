import { ownTurn } from "../core/turns.ts";
import { displayName, displayText, headOf } from "../core/text.ts";
import type { Backend, FileData, ResolveOptions } from "../backends/backend.ts";
import { boundDiff, type TextChange } from "./diff-preview.ts";
import type { BoundPreview } from "./tool.ts";

/** What a file holds at the moment a person is asked about changing it. */
export type CurrentText =
  | { kind: "absent" }
  | { kind: "text"; text: string; version: string | undefined }
  | { kind: "unreadable"; reason: string };

/** Reads the file through the backend, unless it is too large to compare. */
export async function currentText(path: string, backend: Backend, signal: AbortSignal): Promise<CurrentText> {
  const listed = await backend.ls(path, { signal });
  const [entry] = listed.files ?? [];
  if (entry && entry.path === path && (entry.size ?? 0) > MAX_PREVIEW_BYTES) {
    return { kind: "unreadable", reason: "the file is too large to compare" };
  }
  const { data, error, code, version } = await backend.readRaw(path, { signal });
  if (code === "not_found") return { kind: "absent" };
  if (error !== undefined || !data) return { kind: "unreadable", reason: displayName(error ?? "no content") };
  const text = textOf(data);
  return text === undefined
    ? { kind: "unreadable", reason: "the file is binary" }
    : { kind: "text", text, version };
}

/** A path a call names and, where links lead elsewhere, that place: an approval is bound to it. */
export interface Destination {
  place: string | undefined;
  /** For a summary. */
  name: string;
}

export async function destinationOf(
  path: string,
  backend: Backend,
  options: ResolveOptions = {},
): Promise<Destination> {
  const place = backend.followLinks === undefined ? path : await backend.followLinks(path, options);
  return { place, name: place === path || place === undefined ? path : `${path}, which leads to ${place}` };
}

/** A change of text as a diff, bound to where it is made and to every line of it; made in turns of its own. */
export async function diffPreview(
  summary: string,
  change: TextChange,
  place: string | undefined,
): Promise<BoundPreview> {
  await ownTurn();
  const { shown, effect } = boundDiff(change);
  await ownTurn();
  return { kind: "diff", summary: displayName(summary), detail: shown, place, effect: effect() };
}

/** A call that cannot be shown as a diff: its arguments. */
export function argumentsPreview(
  summary: string,
  args: Record<string, unknown>,
  place?: string,
): BoundPreview {
  const pretty = JSON.stringify(args, null, 2);
  const missing = pretty.length - MAX_ARGUMENT_CHARS;
  const detail =
    missing > 0 ? `${headOf(pretty, MAX_ARGUMENT_CHARS)}\n[${missing} more characters not shown]` : pretty;
  const shown = { summary: displayName(summary), detail: displayText(detail) };
  return { kind: "arguments", ...shown, place, effect: null };
}

function textOf({ content }: FileData): string | undefined {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.join("\n") : undefined;
}

const MAX_PREVIEW_BYTES = 10 * 1024 * 1024;
const MAX_ARGUMENT_CHARS = 20_000;
