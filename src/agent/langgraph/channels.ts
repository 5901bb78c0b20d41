/** The channels of an agent's state: the built-in ones, and those of state schemas. */
import { isDeepStrictEqual } from "node:util";
import { type AIMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { isZodSchemaV3 } from "@langchain/core/utils/types";
import { BaseChannel, DeltaChannel, DeltaValue, EmptyChannelError, StateSchema } from "@langchain/langgraph";
import { schemaMetaRegistry } from "@langchain/langgraph/zod";
import { z } from "zod";
import type { FilesUpdate } from "../../backends/backend.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { isObject, defined } from "../../core/unknown.ts";
import type { Todo } from "../../tools/tool.ts";
import type { Middleware } from "../contracts/middleware.ts";
import { type AgentState, CONTEXT_CHANNELS, type FilesState, type TextsByName } from "../contracts/state.ts";
import { callsOf, foldMessages, isReply, isResult } from "../messages/messages.ts";
import { withCalls } from "../models/reply.ts";
import { type Carried, SPENT, addSpent } from "../budget/meter.ts";
import { isOlder } from "../step/files.ts";
import { type MergedFiles, describeConflict } from "../step/merge-files.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

export const TOOLS = "tools";

/** Channel of notes for reports of earlier calls, by tool call id. Calls that ended later write them. */
const FILE_NOTES = "_fileNotes";

/** Channel of calls that a person changed before they ran, by the id of the call. */
export const EDITED_CALLS = "_editedCalls";

/** Channel of the checkpoint namespace of each task whose subagent lost its model; empty once it is done. */
export const LEFT_OFF = "_leftOff";

/** Channel of the goal as judged so far. Only agents with a goal have it. */
export const GOAL = "goalState";

/** Channel of a background subagent with the files that it started from, below those that it changed. */
export const GIVEN_FILES = "_givenFiles";

/** Channels for the agent's own use. They are never shown. */
export const INTERNAL_CHANNELS: ReadonlySet<unknown> = new Set([
  SPENT,
  FILE_NOTES,
  EDITED_CALLS,
  LEFT_OFF,
  GIVEN_FILES,
  ...Object.values(CONTEXT_CHANNELS),
]);

/** Changes of the state by merged files and the notes about them, as far as there are any. */
export const mergedUpdate = ({ update: files, conflicts }: MergedFiles): Partial<AgentState> => {
  const notes = Object.fromEntries(
    conflicts.flatMap((conflict) => (conflict.first ? [[conflict.first, describeConflict(conflict)]] : [])),
  );
  return {
    ...(Object.keys(files).length > 0 && { files }),
    ...(Object.keys(notes).length > 0 && { [FILE_NOTES]: notes }),
  };
};

/** Channels that callers see. As in LangChain, private ones (`_name`) of middleware are not in results. */
export const visibleChannels = (names: readonly string[]): { results: string[]; snapshots: string[] } => ({
  results: names.filter((name) => !name.startsWith("_")),
  snapshots: names.filter((name) => !INTERNAL_CHANNELS.has(name)),
});

/**
 * Folds changes of files in the order of calls; of numbered contents, the newer one stays. `null` deletes, or stays
 * where deletions are kept. Delta channels rely on it: folding batch by batch equals folding all at once.
 */
export const filesReducer =
  (keepDeletions: boolean) =>
  (state: FilesState, writes: ReadonlyArray<FilesUpdate | null | undefined>): FilesState => {
    const next = new Map(Object.entries(state));
    for (const write of writes) {
      for (const [path, data] of Object.entries(write ?? {})) {
        if (isOlder(data, next.get(path))) continue;
        if (data === null && !keepDeletions) next.delete(path);
        else next.set(path, data);
      }
    }
    return Object.fromEntries(next);
  };

/** A channel that checkpoints hold only where it changed. */
function folded<Value extends object>(initial: Value, reducer: (current: Value, writes: Value[]) => Value) {
  const schema = z.custom<Value>(); // zod cannot type the default of a custom schema
  return new DeltaValue<Value, Value>(schema.default(initial as never), { inputSchema: schema, reducer });
}

/** A channel of the newest value (after `null`, the initial one). */
const latest = <Value extends object>(initial: Value): DeltaValue<Value, Value> =>
  folded<Value>(initial, (current, writes) => {
    const newest: Value | null | undefined = writes.at(-1); // a caller may write null
    return newest === undefined ? current : (newest ?? initial);
  });

type ByName<Value> = Readonly<Record<string, Value>>;

const byName = <Value>(): DeltaValue<ByName<Value>, ByName<Value>> =>
  folded<ByName<Value>>({}, (known, writes) => Object.assign({}, known, ...writes));

type RanCall = Pick<ToolCall, "name" | "args">;

/** Replies whose calls a person changed, with the calls that ran; each replaces the one with its id. */
export function editedReplies(state: AgentState): AIMessage[] {
  const edited = (state[EDITED_CALLS] as ByName<RanCall> | undefined) ?? {}; // our channel
  if (Object.keys(edited).length === 0) return [];
  return state.messages.filter(isReply).flatMap((message) => {
    const made = callsOf(message);
    if (!made.some(({ id = "" }) => Object.hasOwn(edited, id))) return [];
    const ran = made.map((call) => ({ ...call, ...edited[call.id ?? ""] }));
    return isDeepStrictEqual(made, ran) ? [] : [withCalls(message, ran)];
  });
}

/** Reports with notes that they lack so far; each replaces the one with its id. */
export function annotatedReports(state: AgentState): ToolMessage[] {
  const notes = Object.entries((state[FILE_NOTES] as TextsByName | undefined) ?? {}); // our channel
  return notes.flatMap(([callId, note]) => {
    const report = state.messages.findLast((message) => isResult(message) && message.tool_call_id === callId);
    if (!report || !isResult(report) || report.text.includes(note)) return [];
    const { id, name = "", status = "success" } = report;
    const content = `${report.text}\n\n${note}`;
    return [new ToolMessage({ ...(id ? { id } : {}), name, status, tool_call_id: callId, content })];
  });
}

/**
 * The built-in channels of a main agent, or of a subagent (`nested`). Checkpoints hold only additions to messages and
 * files, so that the cost of a step does not grow with the thread.
 */
export function builtInChannels(nested: boolean, hasGoal: boolean): Record<string, BaseChannel> {
  const channels = new StateSchema({
    todos: latest<Todo[]>([]),
    [SPENT]: folded<Partial<Carried>>({}, addSpent),
    [FILE_NOTES]: byName<string>(),
    [EDITED_CALLS]: byName<RanCall>(),
    [LEFT_OFF]: byName<string>(),
    ...(nested ? { [GIVEN_FILES]: latest<FilesState>({}) } : {}),
    ...(hasGoal ? { [GOAL]: z.custom<unknown>((state) => state !== undefined) } : {}),
    // A schema that takes `undefined` would put it into every result.
    structuredResponse: z.custom<unknown>((answer) => answer !== undefined),
  }).getChannels();
  // A schema's default is made once and shared by all threads; files are distinguished by this very object.
  const files = new DeltaChannel<FilesState, FilesUpdate>(filesReducer(nested), {
    initialValueFactory: () => ({}),
  });
  // Messages are hardly ever taken back: a snapshot is as long as its history. LangGraph allows no more steps.
  const messages = new DeltaChannel(foldMessages, { snapshotFrequency: 5000 });
  return { messages, ...channels, files };
}

/** State keys that subagents neither get nor return. LangChain's limits count by the last ones. */
const ISOLATED = new Set([GOAL, ...texts.ownChannels.split(" ")]);

/** The state that decides how an agent sees its conversation. A fork gets it with the conversation. */
export function contextState(state: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const keys = ["skillsMetadata", "memoryContents", ...Object.values(CONTEXT_CHANNELS)];
  return defined(Object.fromEntries(keys.map((key) => [key, state[key]])));
}

/** The part of `state` that a subagent starts from, and that its result returns (files aside). */
export const sharedState = (state: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(state).filter(([key]) => !ISOLATED.has(key) && !key.startsWith("_")));

/** The values that a subagent changed, without files. Lists of folding channels contain only the added items. */
export function changedState(
  after: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>>,
  folding: ReadonlySet<string>,
): Record<string, unknown> {
  const changed = Object.entries(sharedState(after)).flatMap(([key, value]): Array<[string, unknown]> => {
    const earlier = before[key];
    if (isDeepStrictEqual(value, earlier)) return [];
    if (!folding.has(key) || !Array.isArray(earlier) || !Array.isArray(value)) return [[key, value]];
    const isLonger = isDeepStrictEqual(value.slice(0, earlier.length), earlier);
    return [[key, isLonger ? (value.slice(earlier.length) as unknown[]) : value]];
  });
  return Object.fromEntries(changed);
}

/** The channels of a layer: those of its schema, and those that it states as data. */
export function layerChannels({ name, stateSchema, channels = {} }: Middleware): Record<string, BaseChannel> {
  const own = Object.entries(channels).map(([key, channel]) => [
    key,
    channel.kind === "texts" ? byName<string>() : latest(channel.initial),
  ]);
  const added = own.length === 0 ? {} : new StateSchema(Object.fromEntries(own)).getChannels();
  return { ...(stateSchema ? channelsOf(stateSchema, name) : {}), ...added };
}

export function channelsOf(schema: unknown, owner: string): Record<string, BaseChannel> {
  const channels = { ...definedChannels(schema, owner) };
  for (const [name, channel] of Object.entries(channels))
    if (channel.lc_graph_name === "LastValue") channels[name] = new LastWritten(channel);
  return channels;
}

export function foldingChannels(channels: Readonly<Record<string, BaseChannel>>): ReadonlySet<string> {
  const kinds = ["BinaryOperatorAggregate", "DeltaChannel"];
  return new Set(Object.keys(channels).filter((name) => kinds.includes(channels[name]?.lc_graph_name ?? "")));
}

/** A value that several calls of a reply may write: the last one counts. LangGraph's own channel would end the run. */
class LastWritten extends BaseChannel {
  override lc_graph_name: string = "LastValue";
  readonly #unwritten: BaseChannel;
  #value: { of: unknown } | undefined;

  /** `unwritten` has the default, where there is one. */
  constructor(unwritten: BaseChannel, value?: { of: unknown }) {
    super();
    this.#unwritten = unwritten;
    this.#value = value ?? (unwritten.isAvailable() ? { of: unwritten.get() } : undefined);
  }

  override fromCheckpoint(checkpoint?: unknown): this {
    const unwritten = this.#unwritten.fromCheckpoint();
    // The base class states that each channel makes channels of its own kind.
    return new LastWritten(unwritten, checkpoint === undefined ? undefined : { of: checkpoint }) as this;
  }

  override update(values: unknown[]): boolean {
    if (values.length === 0) return false;
    this.#value = { of: values.at(-1) };
    return true;
  }

  override get(): unknown {
    if (!this.#value) throw new EmptyChannelError();
    return this.#value.of;
  }

  override checkpoint(): unknown {
    return this.get();
  }

  override isAvailable(): boolean {
    return this.#value !== undefined;
  }
}

function definedChannels(schema: unknown, owner: string): Record<string, BaseChannel> {
  if (StateSchema.isInstance(schema)) return schema.getChannels();
  if (schema instanceof z.ZodObject) {
    // Fields with a registered reducer get their channel from it, the others one that starts with its default.
    const registered: Record<string, BaseChannel> = schemaMetaRegistry.getChannelsForSchema(schema);
    const reduced = Object.entries(registered).filter(([, channel]) => channel.lc_graph_name !== "LastValue");
    return { ...new StateSchema(schema.shape).getChannels(), ...Object.fromEntries(reduced) };
  }
  // Middleware of LangChain still states some schemas with zod 3, whose fields StateSchema reads like those of zod 4.
  if (isZodSchemaV3(schema) && "shape" in schema)
    return new StateSchema(schema.shape as ConstructorParameters<typeof StateSchema>[0]).getChannels();
  // An `Annotation.Root(…)`, whose class LangGraph does not export.
  if (isObject(schema) && "spec" in schema && "lc_graph_name" in schema) {
    const channels = Object.entries(schema.spec as Record<string, BaseChannel | (() => BaseChannel)>);
    return Object.fromEntries(
      channels.map(([name, made]) => [name, typeof made === "function" ? made() : made]),
    );
  }
  throw new ConfigurationError("INVALID_STATE_SCHEMA", fill(texts.invalidStateSchema, owner));
}
