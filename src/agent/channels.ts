import { isZodSchemaV3 } from "@langchain/core/utils/types";
import { BaseChannel, EmptyChannelError, StateSchema } from "@langchain/langgraph";
import { schemaMetaRegistry } from "@langchain/langgraph/zod";
import { z } from "zod";
import { ConfigurationError } from "../core/errors.ts";

/** The channels of a state schema in any of LangGraph's forms. */
export function channelsOf(schema: unknown, owner: string): Record<string, BaseChannel> {
  const channels = Object.entries(definedChannels(schema, owner));
  return Object.fromEntries(
    channels.map(([name, channel]) => [name, isPlain(channel) ? new LastWritten(channel) : channel]),
  );
}

/** Names of channels that fold what is written into what they hold. */
export const foldingChannels = (channels: Readonly<Record<string, BaseChannel>>): ReadonlySet<string> =>
  new Set(Object.keys(channels).filter((name) => FOLDING.has(channels[name]?.lc_graph_name ?? "")));

const FOLDING: ReadonlySet<string> = new Set(["BinaryOperatorAggregate", "DeltaChannel"]);

const isPlain = ({ lc_graph_name: name }: BaseChannel): boolean => name === "LastValue";

/**
 * A value that several calls of one reply may write: the last in the order of the calls counts. LangGraph's own
 * channel would end the run, with everything that the calls and their siblings have done.
 */
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
  if (schema instanceof z.ZodObject) return fromZod(schema);
  // Middleware of LangChain still states some schemas with zod 3.
  if (isZodSchemaV3(schema) && "shape" in schema) return fromZodV3(schema.shape);
  if (isAnnotation(schema)) return fromDefinition(schema.spec);
  throw new ConfigurationError(
    "INVALID_STATE_SCHEMA",
    `The state schema of ${owner} must be a StateSchema, a zod object or an Annotation.Root.`,
  );
}

/** Fields with a registered reducer get their channel from it, the others one that starts with its default. */
function fromZod(schema: z.ZodObject): Record<string, BaseChannel> {
  const registered: Record<string, BaseChannel> = schemaMetaRegistry.getChannelsForSchema(schema);
  const reduced = Object.entries(registered).filter(([, channel]) => channel.lc_graph_name !== "LastValue");
  return { ...new StateSchema(schema.shape).getChannels(), ...Object.fromEntries(reduced) };
}

function fromZodV3(shape: unknown): Record<string, BaseChannel> {
  // Fields of zod 3 follow the same standard interface as those of zod 4, which is what StateSchema reads.
  return new StateSchema(shape as ConstructorParameters<typeof StateSchema>[0]).getChannels();
}

/** Of `Annotation.Root(…)`, whose class LangGraph does not export. */
function isAnnotation(schema: unknown): schema is { spec: ChannelDefinition } {
  return typeof schema === "object" && schema !== null && "spec" in schema && "lc_graph_name" in schema;
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
