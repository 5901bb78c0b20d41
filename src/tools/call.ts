import { z } from "zod";
import type { Backend, Failure, MaybePromise, WriteResult } from "../backends/backend.ts";
import { errors } from "../backends/errors.ts";
import type { Glob } from "../backends/glob.ts";
import {
  type PathResult,
  baseName,
  hasSpellings,
  joinPath,
  parentPaths,
  plainSpelling,
  validatePath,
  withSlash,
  withoutSlash,
} from "../backends/paths.ts";
import { byIdentity } from "../core/by-identity.ts";
import { isAbortError } from "../core/errors.ts";
import { closestName } from "../core/options.ts";
import { displayName, headOf, wellFormed } from "../core/text.ts";
import { isRecord } from "../core/unknown.ts";
import { resolveDestination, failing } from "./call-preview.ts";
import { mendedArguments } from "./mend-arguments.ts";
import type { FileToolSettings } from "./options.ts";
import { type BoundPreview, type ToolContext, type ToolResult, type ToolSpec, toolError } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

/** A notice for a pattern that found nothing, when it was looked for in the root and in no directory there. */
export async function lookedAtRoot(
  glob: Glob,
  path: string,
  { backend, signal }: Pick<ToolContext, "backend" | "signal">,
): Promise<string[]> {
  const directories = path === "/" ? await topDirectories(backend, signal) : [];
  if (directories.length === 0 || directories.some((directory) => glob.reaches(directory.slice(1))))
    return [];
  const names = directories.map((directory) => displayName(withSlash(directory))).join(", ");
  return [`[searched only /; to search one of its directories, pass it as path: ${names}]`];
}

/** The directories of the root, mounts among them. */
async function topDirectories(backend: Backend, signal: AbortSignal): Promise<string[]> {
  const { files = [] } = await backend.ls("/", { signal });
  const directories = files.filter(({ is_dir: isDirectory }) => isDirectory === true);
  return directories.slice(0, 8).map(({ path }) => withoutSlash(path));
}

async function firstExisting(
  directories: readonly string[],
  names: readonly string[],
  backend: Backend,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const name of names) {
    for (const directory of directories) {
      const candidate = joinPath(directory, name);
      const { files = [], error } = await backend.ls(candidate, { signal });
      if (error === undefined && files.length > 0) return candidate;
    }
  }
  return undefined;
}

/** The path with each name below `from` that does not exist replaced by the one spelt nearly the same. */
async function corrected(path: string, backend: Backend, signal: AbortSignal, from = "/") {
  let at = from;
  for (const wanted of path.slice(withSlash(from).length).split("/")) {
    const { files = [] } = await backend.ls(at, { signal });
    const names = files.slice(0, 2000).map((file) => baseName(file.path));
    const name = names.includes(wanted) ? wanted : closestName(wanted, names);
    if (name === undefined) return undefined;
    at = joinPath(at, name);
  }
  return at === path ? undefined : at;
}

/**
 * Runs the work of a call. However an abort shows (before, as an error result, as an exception), the answer
 * is the same; work that finished all the same keeps its result, because its effect is real.
 */
export async function cancellable(tool: string, signal: AbortSignal, work: () => Promise<ToolResult>) {
  if (signal.aborted) return cancelled(tool);
  try {
    const result = await work();
    return signal.aborted && result.status === "error" ? cancelled(tool) : result;
  } catch (error) {
    if (signal.aborted && (isAbortError(error) || error === signal.reason)) return cancelled(tool);
    throw error;
  }
}

/** A path argument as the backend takes it. An omitted directory is the root, or the working directory. */
export function checkPath(
  path: string | undefined,
  backend: Backend,
  allowedPrefixes: readonly string[] | undefined,
): PathResult {
  const form = backend.capabilities?.paths ?? "virtual";
  const given = path ?? (form === "real" ? "." : "/");
  const error = `Path contains half of a surrogate pair: ${displayName(given)}`;
  if (!given.isWellFormed()) return { ok: false, code: "invalid_path", error };
  return validatePath(given, { form, ...(allowedPrefixes ? { allowedPrefixes } : {}) });
}

/** Arguments that name the file of a call. Models also write `path` for `file_path`. */
interface Named {
  file_path?: string | undefined;
  path?: string | undefined;
}

/** The file or directory of a call. `asked`: as the arguments spell it. */
export type CallPlace = Extract<PathResult, { ok: true }> & { asked: string };

interface PathTool<Schema extends z.ZodObject> extends Omit<ToolSpec<Schema>, "handle" | "preview"> {
  work: (args: z.output<Schema>, place: CallPlace, context: ToolContext) => Promise<ToolResult>;
  /** True if the work only reads a little, or fails before it reads. It is then tried before a person is asked. */
  isTried?: (args: z.output<Schema>, place: CallPlace, context: ToolContext) => MaybePromise<boolean>;
  /** Shows a call to its approver. `title`: for a path that is not valid. */
  shown?: {
    title: string;
    preview(args: z.output<Schema>, place: CallPlace, context: ToolContext): Promise<BoundPreview>;
  };
}

/** A tool for the file or directory that `file_path` or `path` names. Its work begins with a valid path. */
export function pathTool<Schema extends z.ZodObject & z.ZodType<Named>>(
  { work, isTried, shown, ...spec }: PathTool<Schema>,
  { allowedPrefixes }: FileToolSettings,
): ToolSpec<Schema> {
  const isFile = "file_path" in spec.schema.shape;
  const expects = isFile ? "file" : "directory";
  const named = ({ file_path: file, path = file }: Named): string | undefined => path;
  const placeOf = async (
    args: Named,
    backend: Backend,
  ): Promise<CallPlace | Extract<PathResult, { ok: false }>> => {
    const checked = checkPath(named(args), backend, allowedPrefixes);
    if (!checked.ok) return checked;
    const { path: asked } = checked;
    // If only another spelling of the path exists, that file is meant; see `plainSpelling`.
    const place = isFile && hasSpellings(asked) ? await backend.followLinks?.(asked) : undefined;
    const isSpelling = place !== undefined && plainSpelling(place) === plainSpelling(asked);
    return { ...checked, asked, path: isSpelling ? place : asked };
  };
  return {
    ...spec,
    ...(isFile ? { aliases: { path: "file_path", ...spec.aliases } } : {}),
    // For gates and permissions.
    pathOf(args) {
      const checked = validatePath(named(args) ?? "/", allowedPrefixes ? { allowedPrefixes } : {});
      return checked.ok ? checked.path : undefined;
    },
    handle: (args, context) =>
      cancellable(spec.name, context.signal, async () => {
        const place = await placeOf(args, context.backend);
        return place.ok ? work(args, place, context) : backendError(place, named(args) ?? "/");
      }),
    async preview(args, context) {
      const place = await placeOf(args, context.backend);
      if (!place.ok)
        return failing(shown?.title ?? spec.name, args, { failure: backendError(place, named(args) ?? "/") });
      if (shown) return shown.preview(args, place, context);
      const missing = await previewMissing(`${spec.name} of`, args, { ...place, expects }, context);
      if (missing || !(await isTried?.(args, place, context))) return missing;
      const failure = await work(args, place, context);
      if (failure.status !== "error") return undefined;
      const to = await resolveDestination(place.path, context.backend);
      return failing(`${spec.name} of ${to.name}`, args, { failure, to });
    },
  };
}

/** Shows a call that can only fail, because nothing is at its path, or a directory where it expects a file. */
export async function previewMissing(
  what: string,
  args: Record<string, unknown>,
  { path, expects }: { path: string; expects: "file" | "directory" | "either" },
  context: ToolContext,
): Promise<BoundPreview | undefined> {
  const { files: [first] = [], ...listed } = await context.backend.ls(path, { signal: context.signal });
  const isOther = expects === "file" && first !== undefined && first.path !== path;
  if (listed.code !== "not_found" && !isOther) return undefined;
  const missing = expects === "directory" ? listed : errors.fileNotFound(path);
  const failure = await failedAt(path, isOther ? errors.isDirectory(path) : missing, context);
  const to = await resolveDestination(path, context.backend);
  return failing(`${what} ${to.name}`, args, { failure, to });
}

/** A backend's failure as the tool's answer; `named`, the path in its text, is shown escaped. */
export function backendError({ error = "unknown failure", code }: Failure, named: string): ToolResult {
  const shown = displayName(named);
  // A path of blanks alone stands between all words.
  const isShown = shown === named || named.trim() === "";
  const text = isShown ? error : error.replaceAll(named, () => shown);
  return toolError(wellFormed(text), code === undefined ? undefined : { code });
}

/**
 * Like `backendError`; if nothing exists at a virtual path, it suggests the file or directory that was probably meant:
 * the same path below a directory of the root, the path with misspelt names corrected, or the end of it below a
 * directory of the root. A sandbox is only asked for the names beside the path.
 */
export async function failedAt(
  path: string,
  failure: Failure,
  { backend, signal }: ToolContext,
): Promise<ToolResult> {
  if (failure.code !== "not_found" || backend.capabilities?.paths === "real")
    return backendError(failure, path);
  const nearest = await (backend.capabilities?.latency === "remote"
    ? corrected(path, backend, signal, parentPaths(path).at(-1))
    : nearestPath(path, backend, signal));
  if (nearest === undefined) return backendError(failure, path);
  const error = `${failure.error ?? "not found"}. Did you mean ${displayName(nearest)}?`;
  return backendError({ ...failure, error }, path);
}

async function nearestPath(path: string, backend: Backend, signal: AbortSignal): Promise<string | undefined> {
  const top = await topDirectories(backend, signal);
  const tails = [...parentPaths(path), path].map((parent) => path.slice(parent.lastIndexOf("/") + 1));
  const [whole = "", ...shorter] = tails;
  return (
    (await firstExisting(top, [whole], backend, signal)) ??
    (await corrected(path, backend, signal)) ??
    (await firstExisting(top, shorter.slice(-4), backend, signal))
  );
}

/** Ends an answer about a file with hard links: it changed under its other names, too. */
export function underOtherNames({ otherNames }: WriteResult): string {
  if (otherNames === undefined) return "";
  const names = otherNames.slice(0, 10).map((name) => `'${displayName(name)}'`);
  return names.length === 0
    ? ". The file has another name elsewhere, which changed too"
    : `. The same file is ${names.join(", ")}, and changed there too`;
}

const cancelled = (tool: string): ToolResult => toolError(`${tool} was cancelled.`, { code: "aborted" });

/** An argument that is a path. Systems take 4096 bytes at most, and each way to look at one costs more the longer it is. */
export const pathText = (): z.ZodString =>
  z.string().max(4096, "Longer than 4096 characters: use the path of a file or directory");

/** An argument that is stored as UTF-8. */
export const storedText = (): z.ZodString =>
  z.string().refine((text) => text.isWellFormed(), texts.halfSurrogate);

/** An argument that is searched for. */
export const patternText = (): z.ZodString =>
  z.string().min(1).max(10_000, "Longer than 10000 characters: search for a part of it");

export type ParsedArguments<Args> = { ok: true; args: Args } | { ok: false; message: string };

/**
 * The one way arguments reach a tool: aliases are renamed, defaults filled in, forms mended, everything else refused
 * with a message that names each bad field.
 */
export function parseArguments<Schema extends z.ZodObject>(
  spec: ToolSpec<Schema>,
  raw: unknown,
): ParsedArguments<z.output<Schema>> {
  const args: unknown = isRecord(raw) ? { ...raw } : raw;
  if (isRecord(args))
    for (const [alias, name] of Object.entries(spec.aliases ?? {})) {
      if (!Object.hasOwn(args, alias) || Object.hasOwn(args, name)) continue;
      args[name] = args[alias];
      delete args[alias];
    }
  let parsed = spec.schema.safeParse(args);
  if (!parsed.success)
    parsed = spec.schema.safeParse(mendedArguments(z.toJSONSchema(spec.schema, { io: "input" }), args));
  if (parsed.success) return { ok: true, args: parsed.data };
  return { ok: false, message: invalidArguments(spec.name, parsed.error.issues) };
}

export interface ArgumentIssue {
  readonly message: string;
  /** Place of the problem, from the arguments down; empty: the arguments themselves. */
  readonly path: readonly PropertyKey[];
}

/** Names each bad field of a call, in bounds. */
export function invalidArguments(tool: string, issues: readonly ArgumentIssue[]): string {
  const problems = issues.slice(0, 5).map(({ message, path }) => {
    const place = path.map(String).join(".");
    return headOf(place === "" ? message : `${place}: ${message}`, 300);
  });
  return `Invalid arguments for ${tool}: ${problems.join("; ")}`;
}

/**
 * JSON Schema of the arguments as a model is offered it: arguments with a default are optional. Bounds,
 * and the defaults 0 and false, are left out. Agents are built often, from few schemas.
 */
export const toolParameters = byIdentity((parameters: ToolSpec["schema"]): Record<string, unknown> => {
  const lengths = ["minLength", "maxLength", "minItems", "maxItems", "pattern"] as const;
  const bounds = [...lengths, "minimum", "maximum", "exclusiveMinimum"] as const;
  const { $schema: _dialect, ...schema } = z.toJSONSchema(parameters, {
    io: "input",
    override: ({ jsonSchema }) => {
      // Each request has these bytes, which do not help a model. Arguments are checked all the same.
      for (const bound of bounds) delete jsonSchema[bound];
      if (jsonSchema.default === false || jsonSchema.default === 0) delete jsonSchema.default;
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return schema;
});
