/** Starts and ends a process: keeps standard output for the protocol, sends traces and deletes old runs. */
import type { Environment } from "../agent/models/choose.ts";
import type { Config } from "../config/schema.ts";
import { isDoneWithin } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { Retention } from "../runs/retention.ts";

/**
 * Keeps standard output for the protocol: returns its stream, and sends everything else that writes
 * there, such as `console.log` in a dependency, to standard error.
 */
export function reserveStdout(): NodeJS.WriteStream {
  const protocol = process.stdout;
  // The global console looks the stream up when it is first used.
  Object.defineProperty(process, "stdout", { configurable: true, get: () => process.stderr });
  return protocol;
}

/** Resolves with the name of the first signal to end. Until then the process does not end by itself. */
export async function untilSignal(): Promise<NodeJS.Signals> {
  // Neither signals nor work on runs keep a process alive.
  const alive = setInterval(() => undefined, 3_600_000);
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => resolve(name));
  });
  clearInterval(alive);
  return signal;
}

/**
 * Keeps the server alive when a promise that nobody awaits is rejected. LangGraph looks at a failed
 * write of a checkpoint only at the end of the step; the run gets the failure there.
 */
export function surviveRejections(logger: Logger): void {
  process.on("unhandledRejection", (error) => logger.error("process.unhandled_rejection", { error }));
}

/**
 * Sends the buffered traces before the process ends. Returns false if some were not sent in time: the process would
 * not end while a tracer keeps trying.
 */
export const sendTraces = async (env: Environment): Promise<boolean> =>
  isDoneWithin(2000, Promise.all([sendSpans(), sendToLangSmith(env)]));

async function sendSpans(): Promise<void> {
  if (!(Symbol.for("opentelemetry.js.api.1") in globalThis)) return;
  const { trace } = await import("@opentelemetry/api");
  const known: object = trace.getTracerProvider();
  // The package may be loaded twice, so its classes do not identify the tracer's own wrapper.
  const inner: unknown =
    "getDelegate" in known && typeof known.getDelegate === "function" ? known.getDelegate() : known;
  const provider = typeof inner === "object" && inner !== null ? inner : known;
  if ("forceFlush" in provider && typeof provider.forceFlush === "function")
    await Promise.resolve(provider.forceFlush()).catch(() => undefined);
}

async function sendToLangSmith(env: Environment): Promise<void> {
  // Any of them switches LangSmith on, as LangChain reads them.
  const switches = ["LANGSMITH_TRACING", "LANGCHAIN_TRACING"].flatMap((name) => [name, `${name}_V2`]);
  if (!switches.some((name) => env[name] === "true")) return;
  const { awaitAllCallbacks } = await import("@langchain/core/callbacks/promises");
  await awaitAllCallbacks();
}

/** Translates the settings about finished runs for the run service. */
export const retentionOf = ({ retention: { days, megabytes } }: Pick<Config, "retention">): Retention => ({
  ...(days === undefined ? {} : { maxAgeMs: days * 86_400_000 }),
  ...(megabytes === undefined ? {} : { maxBytes: megabytes * 1_000_000 }),
});
