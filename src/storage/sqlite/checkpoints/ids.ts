/** Under which ids checkpoints are stored. */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Statement } from "../api.ts";
import { type Address, addressOf, keyOf } from "../../checkpoints/address.ts";
import { ticksOf } from "../../checkpoints/id-time.ts";
import type { Database } from "../database.ts";

/** How many of the newest ids are remembered of each thread, and of how many threads. */
const IDS_PER_THREAD = 500;
const THREADS = 10_000;

/** Facts about a thread that this process works on. */
interface Known {
  /** The id under which a checkpoint is stored, by namespace and LangGraph's id. */
  places: Map<string, string>;
  /** The places before those; dropping old ones one by one would take too long. */
  olderPlaces: Map<string, string>;
  /** Newest id of each namespace. */
  readonly newest: Map<string, string>;
  /** Newest id that was given in the place of another, in any namespace. */
  given: string;
}

/**
 * The ids under which checkpoints are stored: LangGraph's, as long as each is later than those before it.
 * It makes them of the time, and the newest checkpoint of a thread is the one with the last id. So where the
 * clock was set back, or a server with another clock went on, a checkpoint gets the next id after the newest
 * instead. The checkpoint itself keeps LangGraph's: ids of tasks follow from it.
 */
export class CheckpointIds {
  readonly #threads = new Map<string, Known>();
  readonly #newest: Statement<[string, string], string | null>;
  readonly #exists: Statement<[string, string, string], number>;
  readonly #packed: Statement<[string, string, string], number>;

  constructor(database: Database) {
    this.#newest = database
      .prepare<[string, string], string | null>(
        "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?",
      )
      .pluck();
    this.#exists = database
      .prepare<[string, string, string], number>(
        "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
      )
      .pluck();
    this.#packed = database
      .prepare<[string, string, string], number>(
        "SELECT 1 FROM packed_checkpoints WHERE thread_id = ? AND first_id <= ? AND last_id >= ?",
      )
      .pluck();
  }

  /** The rows that a configuration of LangGraph points to. */
  addressOf(config: RunnableConfig): Address {
    const address = addressOf(config);
    const { threadId: thread, namespace, checkpointId: id } = address;
    if (id === undefined || thread === undefined) return address;
    const known = this.#threads.get(thread);
    const place = known && placeOf(known, keyOf(thread, namespace, id));
    return { ...address, checkpointId: place ?? id };
  }

  /** Gives the id under which a checkpoint is or will be stored. */
  place(thread: string, namespace: string, id: string): string {
    const known = this.#known(thread);
    const key = keyOf(thread, namespace, id);
    const before = placeOf(known, key);
    if (before !== undefined) return before;
    const newest = this.#newestOf(thread, namespace, known);
    const isNext = id > newest || !isOfTime(id) || !isOfTime(newest) || this.#isStored(thread, namespace, id);
    const place = isNext ? id : after(newest, id, namespace === "" ? STEP_TICKS : 1n);
    if (!isNext) known.given = place;
    if (place > (known.newest.get(namespace) ?? "")) known.newest.set(namespace, place);
    remember(known, key, place);
    return place;
  }

  /** A checkpoint was read: LangGraph stores what follows from it under its id. */
  remember(thread: string, namespace: string, id: string, place: string): void {
    if (id !== place) remember(this.#known(thread), keyOf(thread, namespace, id), place);
  }

  /** Forgets the thread, because another process may have stored more of it. */
  forget(thread: string): void {
    this.#threads.delete(thread);
  }

  #known(thread: string): Known {
    const before = this.#threads.get(thread);
    if (before) return before;
    const known = { places: new Map(), olderPlaces: new Map(), newest: new Map(), given: "" };
    this.#threads.set(thread, known);
    if (this.#threads.size > THREADS) dropFirst(this.#threads);
    return known;
  }

  /** The newer of two ids: that of the namespace, and that of the thread's own graph, whose steps hold those of the namespace. */
  #newestOf(thread: string, namespace: string, known: Known): string {
    let newest = known.given;
    for (const name of new Set(["", namespace])) {
      let id = known.newest.get(name);
      if (id === undefined) known.newest.set(name, (id = this.#newest.get(thread, name) ?? ""));
      if (id > newest) newest = id;
    }
    return newest;
  }

  #isStored(thread: string, namespace: string, id: string): boolean {
    return (
      this.#exists.get(thread, namespace, id) !== undefined ||
      (namespace === "" && this.#packed.get(thread, id, id) !== undefined)
    );
  }
}

/** Whether ids of this kind are in the order of the times they were made at. */
const isOfTime = (id: string): boolean => ticksOf(id) !== undefined;

/** Between two of a thread's own graph, in units of 100 ns: there is room for those of graphs inside a step. */
const STEP_TICKS = 10_000n;

/** The id of a moment after `newest` that is otherwise like `id`. */
function after(newest: string, id: string, ticks: bigint): string {
  const time = ((ticksOf(newest) ?? 0n) + ticks).toString(16).padStart(15, "0");
  return `${time.slice(0, 8)}-${time.slice(8, 12)}-6${time.slice(12)}${id.slice(18)}`;
}

const placeOf = ({ places, olderPlaces }: Known, key: string): string | undefined =>
  places.get(key) ?? olderPlaces.get(key);

function remember(known: Known, key: string, place: string): void {
  known.places.set(key, place);
  if (known.places.size < IDS_PER_THREAD) return;
  known.olderPlaces = known.places;
  known.places = new Map();
}

/** Removes the entry that was added first. */
function dropFirst<Key>(map: Map<Key, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
