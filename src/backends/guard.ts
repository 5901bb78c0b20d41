import type { Logger } from "../core/logger.ts";
import type { Backend, Failure } from "./backend.ts";
import { backendFailed, thrownFailure } from "./errors.ts";

type Fields = Readonly<Record<string, unknown>>;

const isText = (value: unknown): boolean => typeof value === "string";
const isBytesOrText = (value: unknown): boolean => isText(value) || value instanceof Uint8Array;
const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;

/** What an answer of each method must hold unless it is a failure. */
const SHAPES = {
  ls: ({ files }: Fields) => Array.isArray(files),
  read: ({ content }: Fields) => isBytesOrText(content),
  readRaw: ({ data }: Fields) =>
    isObject(data) && (isBytesOrText(data["content"]) || Array.isArray(data["content"])),
  grep: ({ matches }: Fields) => Array.isArray(matches),
  glob: ({ files }: Fields) => Array.isArray(files),
  write: ({ path }: Fields) => isText(path),
  edit: ({ path }: Fields) => isText(path),
  delete: () => true,
} as const;

type Guarded = keyof typeof SHAPES;

/** Where the path stands among the arguments. */
const PATH_AT: Readonly<Partial<Record<Guarded, number>>> = { grep: 1, glob: 1 };

/**
 * A backend whose methods neither throw nor answer in another shape than the port's: both become a failure with the
 * code `backend_error`, and a line in the log with what was thrown.
 */
export function guardBackend(backend: Backend, log?: Logger): Backend {
  const fail = (failure: Failure, method: string): Failure => {
    if (failure.code === "backend_error") log?.error("backend_error", { method, error: failure.cause });
    return failure;
  };
  const guard = (method: Guarded, run: (...args: unknown[]) => unknown) => {
    return async (...args: unknown[]): Promise<unknown> => {
      const given = args[PATH_AT[method] ?? 0];
      const path = typeof given === "string" ? given : "/";
      try {
        const result = await run.apply(backend, args);
        if (isObject(result) && typeof result["error"] === "string") return fail(result, method);
        if (isObject(result) && (result["error"] ?? undefined) === undefined && SHAPES[method](result))
          return result;
        const wrong = new TypeError(`${method} of the backend answered ${shapeOf(result)}`);
        return fail(backendFailed(path, "its backend answered in a wrong form", wrong), method);
      } catch (thrown) {
        return fail(thrownFailure(path, thrown), method);
      }
    };
  };
  const methods = Object.keys(SHAPES).flatMap((name) => {
    const method = name as Guarded; // a key of the table
    const run = backend[method];
    return run === undefined ? [] : [[method, guard(method, run as (...args: unknown[]) => unknown)]];
  });
  return { ...othersOf(backend), ...Object.fromEntries(methods) } as Backend; // every method as it was
}

/** What a backend has besides guarded methods, for callers that look for it. */
function othersOf(backend: Backend): object {
  const { capabilities } = backend;
  const others = [
    "lifetimeOf",
    "followLinks",
    "uploadFiles",
    "downloadFiles",
    "id",
    "jobs",
    "execute",
  ].flatMap((name) => {
    if (!(name in backend)) return [];
    const value: unknown = Reflect.get(backend, name);
    return [[name, typeof value === "function" ? (value.bind(backend) as unknown) : value]];
  });
  return { ...(capabilities === undefined ? {} : { capabilities }), ...Object.fromEntries(others) };
}

const shapeOf = (result: unknown): string =>
  isObject(result)
    ? `an object with ${Object.keys(result).slice(0, 10).join(", ") || "nothing"}`
    : typeof result;
