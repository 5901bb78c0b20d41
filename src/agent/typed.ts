import type { BaseMessage, BaseMessageLike } from "@langchain/core/messages";
import type { InteropZodObject, InteropZodType } from "@langchain/core/utils/types";
import type { BaseChannel, CompiledStateGraph } from "@langchain/langgraph";
import type { ProviderStrategy, TypedToolStrategy } from "langchain";
import type { z } from "zod";
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
        : Record<string, unknown>;

/** The values that a state schema of the caller adds. */
export type StateOf<Schema> =
  Schema extends z.ZodType<infer Value> ? Value : Schema extends { State: infer Value } ? Value : unknown;

// A type and not an interface: only types fit LangGraph's record of channels without letting in any name.
type Channels<Answer> = {
  messages: BaseChannel<BaseMessage[], BaseMessageLike[] | BaseMessageLike>;
  files: BaseChannel<Record<string, FileData>, FilesUpdate>;
  todos: BaseChannel<Todo[], Todo[]>;
  structuredResponse: BaseChannel<Answer | undefined, Answer | undefined>;
};

/** What begins with `_` stays with the agent. */
type OwnChannels<State> = {
  [Name in keyof State as Name extends `_${string}` ? never : Name]: BaseChannel<State[Name], State[Name]>;
};

type Definition<Format, Schema> = Channels<ResponseOf<Format>> & OwnChannels<StateOf<Schema>>;

/** The compiled graph of an agent, with what goes in and comes out as its parameters say. */
export type TypedDeepAgent<
  Format,
  Schema,
  Context extends InteropZodObject,
  Name extends string = string,
> = CompiledStateGraph<
  Record<string, unknown>,
  Record<string, unknown>,
  string,
  Definition<Format, Schema>,
  Definition<Format, Schema>,
  Context
> & {
  /** The subagents it can delegate to, in the order they are offered: what `subagent_type` of a call may be. */
  readonly subagentNames: ReadonlyArray<Name | "general-purpose">;
};
