import { AnnotationRoot, type BaseChannel, StateSchema } from "@langchain/langgraph";
import { schemaMetaRegistry } from "@langchain/langgraph/zod";
import { z } from "zod";
import { ConfigurationError } from "../core/errors.ts";

/** The channels of a state schema in any of LangGraph's forms. */
export function channelsOf(schema: unknown, owner: string): Record<string, BaseChannel> {
  if (StateSchema.isInstance(schema)) return schema.getChannels();
  if (schema instanceof z.ZodObject) return schemaMetaRegistry.getChannelsForSchema(schema);
  // The definition of an annotation is a record of channels or of functions that make them.
  if (AnnotationRoot.isInstance(schema)) return fromDefinition(schema.spec);
  throw new ConfigurationError(
    "INVALID_STATE_SCHEMA",
    `The state schema of ${owner} must be a StateSchema, a zod object or an Annotation.Root.`,
  );
}

type ChannelDefinition = Record<string, BaseChannel | (() => BaseChannel)>;

function fromDefinition(definition: ChannelDefinition): Record<string, BaseChannel> {
  return Object.fromEntries(
    Object.entries(definition).map(([name, channel]) => [
      name,
      typeof channel === "function" ? channel() : channel,
    ]),
  );
}
