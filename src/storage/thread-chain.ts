import type { Statement } from "better-sqlite3";
import { ownTurn } from "../core/turns.ts";
import type { Database } from "./database.ts";
import type { PackedCheckpoint, PackedCheckpoints } from "./packed-checkpoints.ts";

/** A checkpoint of a thread's own graph, and where it lies. */
export interface Link {
  id: string;
  parent: string | null;
  /** Its content, unless it has a row of its own. */
  packed?: PackedCheckpoint;
}

/** Looked up between two turns of the event loop. */
const LINKS_PER_TURN = 64;
const LINK = `
SELECT checkpoint_id AS id, parent_checkpoint_id AS parent FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ''`;

/** The way from a checkpoint back to the beginning of its thread, through rows and packs. */
export class ThreadChain {
  readonly #newest: Statement<[string], Link>;
  readonly #link: Statement<[string, string], Link>;
  readonly #packed: PackedCheckpoints;

  constructor(database: Database, packed: PackedCheckpoints) {
    this.#newest = database.prepare(`${LINK} ORDER BY checkpoint_id DESC LIMIT 1`);
    this.#link = database.prepare(`${LINK} AND checkpoint_id = ?`);
    this.#packed = packed;
  }

  /** Newest first, from the one named, or the newest. None when that is not there. */
  async to(thread: string, checkpoint: string | undefined): Promise<Link[]> {
    const chain: Link[] = [];
    let pack: ReadonlyMap<string, PackedCheckpoint> | undefined;
    let link: Link | undefined;
    for (let id = checkpoint ?? this.#newest.get(thread)?.id ?? null; id !== null; id = link.parent) {
      if (chain.length % LINKS_PER_TURN === LINKS_PER_TURN - 1) await ownTurn();
      const packed = pack?.get(id);
      link = packed ? { id, parent: packed.parent, packed } : this.#link.get(thread, id);
      if (link === undefined) {
        pack = await this.#packed.around(thread, id);
        link = linkOf(pack?.get(id)) ?? this.#link.get(thread, id);
      }
      if (link === undefined) break;
      chain.push(link);
    }
    return chain;
  }

  /** Where a checkpoint lies now: it may have been packed, or unpacked, since. */
  async find(thread: string, id: string): Promise<Link | undefined> {
    return (
      this.#link.get(thread, id) ??
      linkOf((await this.#packed.around(thread, id))?.get(id)) ??
      this.#link.get(thread, id)
    );
  }
}

const linkOf = (packed: PackedCheckpoint | undefined): Link | undefined =>
  packed && { id: packed.id, parent: packed.parent, packed };
