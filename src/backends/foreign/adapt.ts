import { Adapted } from "./adapted.ts";
import { type BackendV1, fromV1, isV1 } from "./adapt-v1.ts";
import type { Backend } from "../backend.ts";
import type { Logger } from "../../core/logger.ts";
import { guardBackend } from "../guard.ts";
import { ForeignFiles } from "./files.ts";
import { KeyedLock } from "../keyed-lock.ts";

const COMPLETE = ["writeMode", "regexGrep", "versions", "abort"] as const;

/** Writes to a foreign backend, one at a time for each path, whatever number of adapters it has. */
const locks = new WeakMap<object, KeyedLock>();

/**
 * A backend written for deepagents (version 1 or 2 of its protocol) with everything the port promises. What
 * it declares to do itself is left to it; the rest is done here: no file is overwritten by a create, edits
 * are bound to versions, expressions are searched, results are in order, and nothing throws. Of a backend that
 * declares all of it only what it throws and answers is looked at.
 */
export function adaptBackend(foreign: Backend | BackendV1, log?: Logger): Backend {
  const backend = guardBackend(isV1(foreign) ? fromV1(foreign) : foreign, log);
  const declared = backend.capabilities ?? {};
  if (COMPLETE.every((capability) => declared[capability] === true)) return backend;
  const lock = locks.get(foreign) ?? new KeyedLock();
  locks.set(foreign, lock);
  const adapted = new Adapted(backend, new ForeignFiles(backend), lock);
  const lifetimeOf = backend.lifetimeOf?.bind(backend);
  const roots = backend.roots?.bind(backend);
  const followLinks = backend.followLinks?.bind(backend);
  return {
    capabilities: { ...declared, writeMode: true, regexGrep: true, versions: true, abort: true },
    ls: (...args) => adapted.ls(...args),
    read: (...args) => adapted.read(...args),
    readRaw: (...args) => adapted.readRaw(...args),
    grep: (...args) => adapted.grep(...args),
    glob: (...args) => adapted.glob(...args),
    write: (...args) => adapted.write(...args),
    edit: (...args) => adapted.edit(...args),
    ...(backend.delete === undefined ? {} : { delete: (...args) => adapted.delete(...args) }),
    ...(backend.uploadFiles === undefined ? {} : { uploadFiles: (...args) => adapted.uploadFiles(...args) }),
    ...(backend.downloadFiles === undefined
      ? {}
      : { downloadFiles: (...args) => adapted.downloadFiles(...args) }),
    ...(lifetimeOf === undefined ? {} : { lifetimeOf }),
    ...(roots === undefined ? {} : { roots }),
    ...(followLinks === undefined ? {} : { followLinks }),
    ...executionOf(backend),
  };
}

/** `id` and `execute` of a sandbox; nothing of other backends. */
function executionOf(backend: Backend): object {
  if (!("execute" in backend) || typeof backend.execute !== "function") return {};
  const { execute } = backend;
  return {
    id: "id" in backend ? backend.id : "",
    execute: (...args: unknown[]): unknown => Reflect.apply(execute, backend, args),
  };
}
