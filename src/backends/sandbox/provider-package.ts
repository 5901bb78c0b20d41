import type { LoadPackage } from "../optional-package.ts";
import { SandboxError } from "./sandbox-error.ts";

/** What a provider needs that is no part of this package. */
export interface ProviderPackage {
  provider: string;
  name: string;
  /** The version this was written for. */
  version: string;
  /** What is called to make a client; a package without it is another one. */
  client: string;
  /** Environment variables with the keys, as a person should set them. */
  keys: readonly string[];
  hasKeys(environment: NodeJS.ProcessEnv): boolean;
}

/**
 * The client class of a provider's package. Throws the same `SandboxError` whether the package or the key
 * is missing: it says how to get both.
 */
export async function loadClient(needs: ProviderPackage, load: LoadPackage): Promise<unknown> {
  const { provider, name, version, client, keys } = needs;
  let cause: unknown;
  try {
    const loaded = await load(name);
    const found = typeof loaded === "object" && loaded !== null ? Reflect.get(loaded, client) : undefined;
    if (typeof found === "function" && needs.hasKeys(process.env)) return found;
  } catch (error) {
    cause = error;
  }
  throw new SandboxError(
    "NOT_INITIALIZED",
    `Sandboxes of ${provider} need its package and a key: run npm install ${name}@${version} and set ${keys.join(" and ")}`,
    { cause },
  );
}
