import { ConfigurationError } from "../../core/errors.ts";
import type { BackendRuntime } from "../backend.ts";

/** Where files are in a store, or what tells it for each call. */
export type StoreNamespace = readonly string[] | ((runtime: BackendRuntime | undefined) => readonly string[]);

const COMPONENT = /^[A-Za-z0-9_.@+:~-]+$/;

/** The namespace of one call; throws `ConfigurationError` when it is none. */
export function namespaceOf(
  configured: StoreNamespace | undefined,
  runtime: BackendRuntime | undefined,
): string[] {
  const assistant = runtime?.assistantId;
  const fallback = assistant === undefined ? ["filesystem"] : [assistant, "filesystem"];
  const chosen = typeof configured === "function" ? configured(runtime) : configured;
  const namespace = [...(chosen ?? fallback)];
  const bad = namespace.find((component) => !COMPONENT.test(component));
  if (bad === undefined && namespace.length > 0) return namespace;
  throw badNamespace(namespace);
}

/** Many stores refuse periods as well, which only they can tell. */
export const badNamespace = (namespace: readonly string[]): ConfigurationError =>
  new ConfigurationError(
    "STORE_NAMESPACE",
    `The store namespace ${JSON.stringify(namespace)} is not usable: give at least one part, each made of letters, digits and _ @ + : ~ - (and periods, where the store takes them)`,
  );
