/** Keeps the channels that agents have for themselves out of streams that show graphs inside a task. */
import { STREAM_KEY } from "./internals.ts";
import { INTERNAL_CHANNELS } from "./channels.ts";

/** The part that LangGraph uses of the stream that it hands to graphs inside a task. */
interface GraphStream {
  readonly modes: ReadonlySet<string>;
  push(chunk: Chunk): void;
}
type Chunk = [namespace: string[], mode: string, payload: unknown, ...others: unknown[]];

/** `configurable` of a graph whose steps reach the stream of the graph around it, if that has one, without them. */
export function withVisibleStream(configurable: Record<string, unknown> = {}): Record<string, unknown> {
  const stream = configurable[STREAM_KEY] as GraphStream | undefined; // LangGraph's
  if (!stream) return { ...configurable };
  const { modes } = stream;
  const push = ([namespace, mode, payload, ...others]: Chunk): void =>
    stream.push([namespace, mode, visible(mode, payload), ...others]);
  return { ...configurable, [STREAM_KEY]: { modes, push } satisfies GraphStream };
}

/** The payload of a chunk, in the form that LangGraph has for each mode. */
function visible(mode: string, payload: unknown): unknown {
  if (!isRecord(payload)) return payload;
  if (mode === "values") return withoutInternals(payload);
  if (mode === "updates")
    return mapped(payload, Object.keys(payload), (update) =>
      Array.isArray(update) ? update.map(withoutInternals) : withoutInternals(update),
    );
  if (mode === "debug") return mapped(payload, ["payload"], stepOf);
  return mode === "checkpoints" || mode === "tasks" ? stepOf(payload) : payload;
}

/** A checkpoint has `values`; a task has its `input`, and when it ended the writes as its `result`. */
const stepOf = (step: unknown): unknown =>
  mapped(mapped(step, ["values", "input"], withoutInternals), ["result"], (result) =>
    Array.isArray(result)
      ? result.filter((write) => !(Array.isArray(write) && INTERNAL_CHANNELS.has(write[0])))
      : withoutInternals(result),
  );

const withoutInternals = (state: unknown): unknown =>
  isRecord(state)
    ? Object.fromEntries(Object.entries(state).filter(([name]) => !INTERNAL_CHANNELS.has(name)))
    : state;

/** Applies `change` to those of these members that the value has. */
function mapped(given: unknown, names: readonly string[], change: (value: unknown) => unknown): unknown {
  if (!isRecord(given)) return given;
  const changed = names.filter((name) => name in given).map((name) => [name, change(given[name])]);
  return { ...given, ...Object.fromEntries(changed) };
}

/** Messages and other objects of classes are left as they are. */
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
