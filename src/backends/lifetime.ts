import type { Backend, BackendCapabilities } from "./backend.ts";

/**
 * How long what is written at `path`, or below it, stays: with the state of the thread, which goes back to
 * its last checkpoint after a crash, or in the world outside. A backend that does not tell is outside.
 */
export async function lifetimeAt(backend: Backend, path: string): Promise<BackendCapabilities["lifetime"]> {
  return (await backend.lifetimeOf?.(path)) ?? backend.capabilities?.lifetime ?? "persistent";
}
