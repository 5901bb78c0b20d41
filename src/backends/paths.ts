import { createHash } from "node:crypto";
import { type BackendFailure, errors } from "./errors.ts";

/**
 * The rules for virtual paths, all of them. A normalized path starts with `/`, has no empty, `.` or
 * `..` segment and no trailing slash (but `/` itself).
 */

/** `directory` is true if the path was written with a trailing slash; `path` itself has none. */
export type PathResult = { ok: true; path: string; directory: boolean } | ({ ok: false } & BackendFailure);

/**
 * Checks and normalizes a path from outside. Idempotent. Decodes no percent signs and folds no Unicode, so the path
 * that was checked is the one that is used. `allowedPrefixes`: the path must be one of these or lie below one, on a
 * segment boundary. The form `real` leaves a relative path relative, for the backend to join to its directory.
 */
export function validatePath(
  path: unknown,
  options: { allowedPrefixes?: readonly string[]; form?: "virtual" | "real" } = {},
): PathResult {
  if (typeof path !== "string" || path.trim() === "") return refusePath(errors.pathEmpty());
  if (path.includes("\0")) return refusePath(errors.pathHasNul());
  // Half of a character has no UTF-8, so two such names could be one file.
  if (!path.isWellFormed()) return refusePath(errors.pathNotUnicode());
  const segments = path.split(/[/\\]/);
  if (path.startsWith("~") || segments.includes("..")) return refusePath(errors.pathTraversal(path));
  if (/^(?:[a-zA-Z]:|\\\\)/.test(path)) return refusePath(errors.windowsPath(path));
  const kept = segments.filter((segment) => segment !== "" && segment !== ".");
  const relative = options.form === "real" && segments[0] !== "";
  const normalized = relative ? kept.join("/") || "." : `/${kept.join("/")}`;
  const prefixes = options.allowedPrefixes;
  if (prefixes !== undefined && !prefixes.some((prefix) => isAtOrBelow(normalized, prefix)))
    return refusePath(errors.pathNotAllowed(path, prefixes));
  const last = segments.at(-1);
  return { ok: true, path: normalized, directory: last === "" || last === "." || kept.length === 0 };
}

const refusePath = (failure: BackendFailure): PathResult => ({ ok: false, ...failure });

/** True if a folder may hold the same name written with other characters that look the same. */
export const hasSpellings = (name: string): boolean => /[^\x21-\x26\x28-\x7e]/.test(name);

/** A name as people and models type it: composed letters, ordinary spaces, straight apostrophes. */
export const plainSpelling = (name: string): string =>
  name
    .normalize("NFC")
    .replace(/[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g, " ")
    .replace(/[\u2018\u2019]/g, "'");

/** True if `path` is `prefix` or lies below it; `/mem` is not below `/me`. A trailing slash of `prefix` is ignored. */
export function isAtOrBelow(path: string, prefix: string): boolean {
  const bare = withoutSlash(prefix);
  return bare === "/" || path === bare || path.startsWith(`${bare}/`);
}

/** `/a` and `/a/` as `/a/`; the root stays `/`. */
export const withSlash = (path: string): string => (path.endsWith("/") ? path : `${path}/`);

/** `/a` and `/a/` as `/a`; the root stays `/`. */
export const withoutSlash = (path: string): string =>
  path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;

/** The name at the end of a path, without a trailing slash; empty for the root. */
export function baseName(path: string): string {
  const bare = withoutSlash(path);
  return bare.slice(bare.lastIndexOf("/") + 1);
}

/** `name` (possibly several segments) below the directory `directory`. */
export const joinPath = (directory: string, name: string): string => withSlash(directory) + name;

/** The part of `path` below `directory`, without a leading slash; `path` must lie at or below it. */
export const relativeTo = (directory: string, path: string): string =>
  path.slice(withSlash(directory).length);

/** The folder directly in `directory` that holds a file, with its slash; undefined for a file in `directory`. */
export function subfolder(directory: string, file: string): string | undefined {
  const rest = relativeTo(directory, file);
  const slash = rest.indexOf("/");
  return slash === -1 ? undefined : withSlash(directory) + rest.slice(0, slash + 1);
}

/** The directories above a normalized path, outermost first: `/a/b/c` has `/a` and `/a/b`. */
export function parentPaths(path: string): string[] {
  const parents: string[] = [];
  for (let at = path.indexOf("/", 1); at !== -1; at = path.indexOf("/", at + 1))
    parents.push(path.slice(0, at));
  return parents;
}

/** Puts a mounted backend's path below its prefix: `/a` of `/memories/` is `/memories/a`. */
export const addPrefix = (prefix: string, path: string): string =>
  withoutSlash(prefix) === "/" ? path : withoutSlash(prefix) + (path === "/" ? "" : path);

/** The reverse: `/memories/a` below `/memories/` is `/a`, `/memories` is `/`. */
export const stripPrefix = (prefix: string, path: string): string =>
  withoutSlash(prefix) === "/" ? path : path.slice(withoutSlash(prefix).length) || "/";

/** Order of results: by UTF-16 code units, the same on every machine. */
export const comparePaths = (left: string, right: string): number =>
  left < right ? -1 : left > right ? 1 : 0;

const SAFE_ID_LENGTH = 100;

/**
 * A file name for a tool call id: letters, digits, `_` and `-` stay. An id that had to be changed or is
 * longer than 100 characters gets a hash of the original, so that two ids never share a file.
 */
export function sanitizeToolCallId(id: string): string {
  const safe = id.replace(/[^A-Za-z0-9_-]/g, "_");
  if (safe === id && id.length > 0 && id.length <= SAFE_ID_LENGTH) return safe;
  const hash = createHash("sha256").update(id).digest("hex").slice(0, 16);
  return `${safe.slice(0, SAFE_ID_LENGTH)}-${hash}`;
}
