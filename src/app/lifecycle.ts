/**
 * What a process keeps and ends with: standard output for the protocol, traces sent before its end, runs not forgotten yet.
 */
import type { Config } from "../config/schema.ts";
import type { Logger } from "../core/logger.ts";
import type { Retention } from "../runs/ports.ts";

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

/** Resolves with the name of the signal that tells the process to end. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve(signal));
  });
}

/**
 * A promise that nobody waits for must not end a server that works for others. LangGraph looks at a failed
 * write of a checkpoint only at the end of the step; the run gets the failure there.
 */
export function surviveRejections(logger: Logger): void {
  process.on("unhandledRejection", (error) => logger.error("process.unhandled_rejection", { error }));
}

/** How long a process that is about to end waits for its traces to be sent, in milliseconds. */
const PATIENCE_MS = 2000;

/** Any of them switches LangSmith on, as LangChain reads them. */
const LANGSMITH_SWITCHES = [
  "LANGSMITH_TRACING",
  "LANGSMITH_TRACING_V2",
  "LANGCHAIN_TRACING",
  "LANGCHAIN_TRACING_V2",
] as const;

/**
 * Has tracers send what they keep yet: the process is about to end. False: not all of it was sent in time,
 * and what is left would keep the process for as long as a tracer tries.
 */
export async function sendTraces(env: Readonly<Record<string, string | undefined>>): Promise<boolean> {
  return isDoneWithin(PATIENCE_MS, Promise.all([sendSpans(), sendToLangSmith(env)]));
}

/** Whether `work` was done, whichever way, within `milliseconds`. */
export async function isDoneWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  return Promise.race([work.then(() => true), late]).finally(() => clearTimeout(timer));
}

async function sendSpans(): Promise<void> {
  if (!(Symbol.for("opentelemetry.js.api.1") in globalThis)) return;
  const { trace } = await import("@opentelemetry/api");
  const known: object = trace.getTracerProvider();
  // The package may be there twice, so that its classes do not tell what stands for the tracer's own.
  const inner: unknown =
    "getDelegate" in known && typeof known.getDelegate === "function" ? known.getDelegate() : known;
  const provider = typeof inner === "object" && inner !== null ? inner : known;
  if ("forceFlush" in provider && typeof provider.forceFlush === "function") {
    await Promise.resolve(provider.forceFlush()).catch(() => undefined);
  }
}

async function sendToLangSmith(env: Readonly<Record<string, string | undefined>>): Promise<void> {
  if (!LANGSMITH_SWITCHES.some((name) => env[name] === "true")) return;
  const { awaitAllCallbacks } = await import("@langchain/core/callbacks/promises");
  await awaitAllCallbacks();
}

/** What the configuration says about runs that are over, as the run service takes it. */
export function retentionOf({ retention: { days, megabytes } }: Pick<Config, "retention">): Retention {
  return {
    ...(days === undefined ? {} : { maxAgeMs: days * 86_400_000 }),
    ...(megabytes === undefined ? {} : { maxBytes: megabytes * 1_000_000 }),
  };
}
