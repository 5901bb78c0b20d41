import type { BaseMessage, BaseMessageLike } from "@langchain/core/messages";
import type { InferInteropZodOutput, InteropZodObject, InteropZodType } from "@langchain/core/utils/types";
import type { BaseChannel, CompiledStateGraph } from "@langchain/langgraph";
import type { ProviderStrategy, TypedToolStrategy } from "langchain";
import type { FileData, FilesUpdate } from "../backends/backend.ts";
import type { Todo } from "../tools/tool.ts";

/** The structured answer that a response format asks for. */
export type ResponseOf<Format> =
  Format extends TypedToolStrategy<infer Answer>
    ? Answer
    : Format extends ProviderStrategy<infer Answer>
      ? Answer
      : Format extends InteropZodType<infer Answer>
        ? Answer
        : Format extends readonly (infer One)[]
          ? ResponseOf<One>
          : Record<string, unknown>;

/** The values of a state schema: LangGraph's, a zod object, or an annotation; `never` and `any` are none. */
export type StateOf<Schema> = 0 extends 1 & Schema
  ? unknown
  : [Schema] extends [never]
    ? unknown
    : Schema extends { State: infer Value }
      ? Value
      : Schema extends InteropZodType
        ? InferInteropZodOutput<Schema>
        : unknown;

/** What may be written to those values. */
type UpdateOf<Schema> = Schema extends { Update: infer Value } ? Value : StateOf<Schema>;

/** The state schema of a middleware, in whichever form it is stated. */
type SchemaIn<Layer> = Layer extends { stateSchema?: infer Schema } ? Exclude<Schema, undefined> : unknown;

/** The channels that a state schema adds; what begins with `_` stays with the agent. */
type ChannelsOf<Schema> = OwnChannels<StateOf<Schema>, UpdateOf<Schema>>;

/** The channels that middleware adds. */
type ChannelsIn<Layers> = Layers extends readonly [infer First, ...infer Rest]
  ? ChannelsOf<SchemaIn<First>> & ChannelsIn<Rest>
  : unknown;

// A type and not an interface: only types fit LangGraph's record of channels without letting in any name.
type Channels<Answer> = {
  messages: BaseChannel<BaseMessage[], BaseMessageLike[] | BaseMessageLike>;
  files: BaseChannel<Record<string, FileData>, FilesUpdate>;
  todos: BaseChannel<Todo[], Todo[]>;
  structuredResponse: BaseChannel<Answer | undefined, Answer | undefined>;
};

type OwnChannels<State, Update> = {
  // A field without a default is not there before it is written.
  [Name in keyof State as Name extends BuiltIn | `_${string}` ? never : Name]-?: BaseChannel<
    State[Name],
    Name extends keyof Update ? Update[Name] : State[Name]
  >;
};

type BuiltIn = keyof Channels<unknown>;

type Definition<Format, Schema, Layers> = Channels<ResponseOf<Format>> &
  ChannelsOf<Schema> &
  ChannelsIn<Layers>;

/** The compiled graph of an agent, with what goes in and comes out as its parameters say. */
export type TypedDeepAgent<
  Format,
  Schema,
  Context extends InteropZodObject,
  Name extends string = string,
  Layers extends readonly unknown[] = readonly [],
> = CompiledStateGraph<
  Record<string, unknown>,
  Record<string, unknown>,
  string,
  Definition<Format, Schema, Layers>,
  Definition<Format, Schema, Layers>,
  Context
> & {
  /** The subagents it can delegate to, in the order they are offered: what `subagent_type` of a call may be. */
  readonly subagentNames: ReadonlyArray<Name | "general-purpose">;
  /** The graph itself, for code that asks agents of LangChain or deepagents for theirs. */
  readonly graph: TypedDeepAgent<Format, Schema, Context, Name, Layers>;
};
