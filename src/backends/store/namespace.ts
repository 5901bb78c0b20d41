import { ConfigurationError } from "../../core/errors.ts";
import type { BackendRuntime } from "../backend.ts";

/** Where files are in a store, or what tells it for each call; outside of a run there is nothing to tell it by. */
export type StoreNamespace = readonly string[] | ((runtime: Partial<BackendRuntime>) => readonly string[]);

const COMPONENT = /^[A-Za-z0-9_.@+:~-]+$/;

/** The namespace of one call; throws `ConfigurationError` when it is none. */
export function namespaceOf(
  configured: StoreNamespace | undefined,
  runtime: BackendRuntime | undefined,
): string[] {
  const assistant = runtime?.assistantId;
  const fallback = assistant === undefined ? ["filesystem"] : [assistant, "filesystem"];
  const chosen = typeof configured === "function" ? configured(runtime ?? {}) : configured;
  return checkNamespace(chosen ?? fallback);
}

/** @throws ConfigurationError for what callers without types give, and for parts that a run has no value for. */
export function checkNamespace(given: readonly string[]): string[] {
  const parts: readonly unknown[] = Array.isArray(given) ? given : [];
  const missing = parts.findIndex((part) => typeof part !== "string");
  if (missing >= 0) {
    throw new ConfigurationError(
      "STORE_NAMESPACE",
      `Part ${missing + 1} of the store namespace is ${String(parts[missing])}, so files would be shared by all that have no value there; give it for each run, or choose another part`,
    );
  }
  if (parts.length === 0 || !parts.every((part) => COMPONENT.test(String(part)))) throw badNamespace(given);
  return [...given];
}

/** Many stores refuse periods as well, which only they can tell. */
export const badNamespace = (namespace: readonly string[]): ConfigurationError =>
  new ConfigurationError(
    "STORE_NAMESPACE",
    `The store namespace ${JSON.stringify(namespace)} is not usable: give at least one part, each made of letters, digits and _ @ + : ~ - (and periods, where the store takes them)`,
  );
