import type { Checkpoint, CheckpointMetadata, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { GraphAddress } from "./address.ts";

/** Size of a checkpoint channel that is stored apart. It is lower, because later checkpoints repeat most channels. */
const LARGE_IN_CHECKPOINT = 4096;

/** Begins the type of a value that is stored apart; the row has the name of its blob. */
const BLOB = "blob:";
/** Begins the type of a checkpoint that has channels in blobs. */
const BLOBS = "blobs:";

/** Serialised values by the hash of their content. */
export interface BlobStore {
  /** Stores a value that the graph refers to, and returns its name. */
  put(owner: GraphAddress, content: Uint8Array): Promise<Uint8Array>;
  /** Throws StorageError if the value is missing. */
  get(name: Uint8Array): Promise<Uint8Array>;
}

/** A checkpoint with the types and names of its large channels' blobs instead of their values. */
type Divided = Checkpoint & { blobs?: Record<string, [type: string, name: string]> };

/** Serialises values, and stores those that are large apart from their rows, each whole. */
export class LargeValues {
  readonly #blobs: BlobStore;
  readonly #serde: () => SerializerProtocol;

  /** `serde` returns the current serialiser, because users of LangGraph may replace it. */
  constructor(blobs: BlobStore, serde: () => SerializerProtocol) {
    this.#blobs = blobs;
    this.#serde = serde;
  }

  async dumpsTyped(
    value: unknown,
    owner: GraphAddress,
    atLeast = 64 * 1024,
  ): Promise<[type: string, data: Uint8Array]> {
    const [type, data] = await this.#serde().dumpsTyped(value);
    if (data.length < atLeast) return [type, data];
    return [BLOB + type, await this.#blobs.put(owner, data)];
  }

  async loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
    if (!type.startsWith(BLOB)) return this.#serde().loadsTyped(type, data);
    return this.#serde().loadsTyped(type.slice(BLOB.length), await this.whole(type, data));
  }

  /** Returns the serialised value, even if it is stored apart. */
  async whole(type: string, data: Uint8Array | string): Promise<Uint8Array | string> {
    return type.startsWith(BLOB) ? this.#blobs.get(Buffer.from(data)) : data;
  }

  /** Serialises a checkpoint and its metadata after storing its large channels apart. */
  async dumpsCheckpoint(
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    owner: GraphAddress,
  ): Promise<[type: string, checkpoint: Uint8Array, metadata: Uint8Array]> {
    const [, facts] = await this.#serde().dumpsTyped(metadata);
    const [type, whole] = await this.#serde().dumpsTyped(checkpoint);
    if (whole.length < LARGE_IN_CHECKPOINT) return [type, whole, facts];
    const divided: Required<Divided> = { ...checkpoint, channel_values: {}, blobs: {} };
    for (const [channel, value] of Object.entries(checkpoint.channel_values)) {
      const [blob, name] = await this.dumpsTyped(value, owner, LARGE_IN_CHECKPOINT);
      if (blob.startsWith(BLOB)) divided.blobs[channel] = [blob, Buffer.from(name).toString("base64")];
      else divided.channel_values[channel] = value;
    }
    const [, small] = await this.#serde().dumpsTyped(divided);
    return [BLOBS + type, small, facts];
  }

  /** Loads a checkpoint with all large channels, or with only these. */
  async loadsCheckpoint(type: string, data: Uint8Array, channels?: readonly string[]): Promise<Checkpoint> {
    const { blobs = {}, ...checkpoint } = (await this.#loadsDivided(type, data)) as Divided; // as it was stored above
    const wanted = Object.entries(blobs).filter(([channel]) => channels?.includes(channel) ?? true);
    await Promise.all(
      wanted.map(async ([channel, [blob, name]]) => {
        checkpoint.channel_values[channel] = await this.loadsTyped(blob, Buffer.from(name, "base64"));
      }),
    );
    return checkpoint;
  }

  async loadsMetadata(type: string, data: Uint8Array): Promise<CheckpointMetadata> {
    return (await this.#loadsDivided(type, data)) as CheckpointMetadata; // as it was stored above
  }

  #loadsDivided(type: string, data: Uint8Array): Promise<unknown> {
    return this.#serde().loadsTyped(type.startsWith(BLOBS) ? type.slice(BLOBS.length) : type, data);
  }
}
