import { relative, resolve, sep } from "node:path";
import type { Located } from "../checked-backend.ts";
import { type BackendFailure, outsideRoot } from "../errors.ts";
import { validatePath } from "../paths.ts";

/** A path as it was asked for, and as segments from the root of the jail. */
export interface FilesystemPath extends Located {
  segments: readonly string[];
}

export type FilesystemPathResult = ({ ok: true } & FilesystemPath) | ({ ok: false } & BackendFailure);

export interface PathForm {
  virtual: boolean;
  /** Real path of the directory that `/` or a relative path means. */
  rootDir: string;
  /** The same directory as it was configured, links and all. */
  configuredDir: string;
  /** Real path of the jail: `rootDir`, or the root of the file system without containment. */
  jailDir: string;
}

const segmentsOf = (path: string, separator: string): string[] =>
  path.split(separator).filter((segment) => segment !== "");

/** Reads a path in the form a file system backend was set to. Names only; nothing is looked up. */
export function parseFilesystemPath(path: string, form: PathForm): FilesystemPathResult {
  const valid = validatePath(path, { form: form.virtual ? "virtual" : "real" });
  if (!valid.ok) return valid;
  const base = segmentsOf(relative(form.jailDir, form.rootDir), sep);
  if (form.virtual) {
    return { ok: true, segments: [...base, ...segmentsOf(valid.path, "/")], path: valid.path };
  }
  const asked = resolve(form.rootDir, valid.path);
  const wanted = replaceBase(asked, form.configuredDir, form.rootDir) ?? asked;
  const below = replaceBase(wanted, form.jailDir, "");
  if (below === undefined) return { ok: false, ...outsideRoot(valid.path) };
  return { ok: true, segments: segmentsOf(below, sep), path: wanted };
}

/** The path that `parseFilesystemPath` reads as `segments`; undefined when it has none in this form. */
export function filesystemPathOf(segments: readonly string[], form: PathForm): string | undefined {
  const real = resolve(form.jailDir, ...segments);
  if (!form.virtual) return real;
  const below = replaceBase(real, form.rootDir, "");
  return below === undefined ? undefined : `/${segmentsOf(below, sep).join("/")}`;
}

/** `path` with `base` at its beginning replaced; undefined when it is not below `base`. */
function replaceBase(path: string, base: string, by: string): string | undefined {
  if (path === base) return by;
  const start = base.endsWith(sep) ? base : base + sep;
  return path.startsWith(start) ? by + sep + path.slice(start.length) : undefined;
}
