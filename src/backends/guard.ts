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
  const guarded = new Map<string | symbol, unknown>();
  for (const name of Object.keys(SHAPES)) {
    const method = name as Guarded; // a key of the table
    const run = backend[method];
    if (run !== undefined) guarded.set(method, guard(method, run as (...args: unknown[]) => unknown));
  }
  // All else that callers may look for is there as it was, also what only this backend has. The target is an object
  // of its own, because the proxy of a frozen object may answer nothing else than the object does.
  return new Proxy({} as Backend, {
    get: (_target, name) => {
      const value: unknown = guarded.get(name) ?? Reflect.get(backend, name, backend);
      return typeof value === "function" ? (value.bind(backend) as unknown) : value;
    },
    has: (_target, name) => name in backend,
    getPrototypeOf: () => Reflect.getPrototypeOf(backend),
  });
}

const shapeOf = (result: unknown): string =>
  isObject(result)
    ? `an object with ${Object.keys(result).slice(0, 10).join(", ") || "nothing"}`
    : typeof result;
