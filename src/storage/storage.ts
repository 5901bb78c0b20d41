/** All storage of a server: files on one machine, or a Postgres that any number of servers share. */
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { Clock } from "../core/clock.ts";
import type { RunRepository } from "../runs/sql/repository.ts";
import type { Checkpoints } from "../runs/thread-ports.ts";
import type { Principal } from "../runs/run.ts";
import type { SharedState, StreamStore } from "../runs/server-ports.ts";
import type { MemoryStore } from "./memories/contracts.ts";
import type { Embeddings } from "./memories/hybrid-search.ts";

export interface Storage {
  readonly runs: RunRepository;
  /** The time that all servers on this storage agree on. */
  readonly clock: Clock;
  /** Opens the storage of agents; loads LangGraph. */
  forAgents(): Promise<AgentStorage>;
  /** Announces the environment of this server. Returns the environments of those that are there already. */
  enter(environment: string): Promise<string[]>;
  /** A secret of 32 bytes that all servers on this storage have, and nobody else. Absent: files are of one machine. */
  secret?(name: string): Promise<Uint8Array>;
  /** True if a newer version has changed the storage; this version then stops using it. */
  isOutdated(): boolean;
  close(): Promise<void>;
}

/** Storage that servers on other machines have too. */
export interface SharedStorage extends Storage, SharedState {
  /** Messages sent to sessions of 2025-era clients. */
  openStreams(): Promise<StreamStore>;
  /** Writes, reads and deletes an object where large values are kept, if that is elsewhere. Throws the problem. */
  tryLargeValues(): Promise<void>;
  secret(name: string): Promise<Uint8Array>;
}

interface AgentStores {
  checkpointer: BaseCheckpointSaver & Checkpoints;
  store: MemoryStore;
}

export interface AgentStorage extends AgentStores {
  /** Returns the storage for this principal's threads and this namespace's memories; row-level security confines it. */
  of(principal: Principal, memories: string[]): AgentStores;
  /** Lets memories be found by their meaning. */
  embeddings: Embeddings;
}
