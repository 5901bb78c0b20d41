/** Reads the tool list of a server page by page, as long as pages have new tools and memory for them is left. */
import type { Tool } from "@modelcontextprotocol/client";
import { type LeftOutTool, readTool } from "./answers.ts";

/**
 * A list may take so many characters, each entry some more for the objects that are made of it. After so many pages in a
 * row without a new tool, it is taken for one without end. So many tools that cannot be offered are named.
 */
const LIST_BOUNDS = { characters: 200_000_000, perEntry: 2000, idlePages: 8, leftOut: 50 };

/** A list that is being read, or was read. */
export class ToolList {
  readonly tools: Tool[] = [];
  /** Tools that cannot be offered. The first are named. */
  readonly leftOut: LeftOutTool[] = [];
  readonly #stopped = new AbortController();
  /** False when the list has ended. */
  readonly end: Promise<false>;

  /** `first`: the first page. `reason` describes the error of a later one, which costs the rest of the list. */
  constructor(
    first: Record<string, unknown>,
    ask: (params: { cursor: string }, signal: AbortSignal) => Promise<Record<string, unknown>>,
    reason: (error: unknown) => string,
  ) {
    this.end = this.#read(first, ask)
      .catch(reason)
      .then((problem) => {
        if (problem !== undefined) this.leftOut.push(ToolList.further(problem));
        return false;
      });
  }

  /** Names the tools on pages that were not read. */
  static further(reason: string): LeftOutTool {
    return { tool: "(further tools)", reason };
  }

  /** Stops reading a list for which nobody waits anymore. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Returns the reason why there may be more. */
  async #read(
    first: Record<string, unknown>,
    ask: (params: { cursor: string }, signal: AbortSignal) => Promise<Record<string, unknown>>,
  ): Promise<string | undefined> {
    const [names, cursors] = [new Set<string>(), new Set<string>()];
    const others = { tool: "(more tools)", reason: "they cannot be offered either" };
    let room = LIST_BOUNDS.characters;
    for (let [page, idle] = [first, 0]; ;) {
      const entries = [page["tools"] ?? []].flat();
      idle += 1;
      for (const one of entries.map(readTool)) {
        if (!("name" in one)) {
          const { length } = this.leftOut;
          if (length <= LIST_BOUNDS.leftOut) this.leftOut.push(length < LIST_BOUNDS.leftOut ? one : others);
        }
        // The first tool of each name counts.
        else if (!names.has(one.name)) {
          names.add(one.name);
          this.tools.push(one);
          idle = 0;
        }
      }
      room -= JSON.stringify(page).length + entries.length * LIST_BOUNDS.perEntry;
      const cursor = page["nextCursor"];
      // Some servers return their last cursor again, and the last page with it.
      if (typeof cursor !== "string" || cursor === "" || (idle > 0 && cursors.has(cursor))) return undefined;
      if (idle >= LIST_BOUNDS.idlePages) return `${idle} pages of its list in a row had no new tool`;
      if (room < 0) return "its list takes too much memory";
      cursors.add(cursor);
      page = await ask({ cursor }, this.#stopped.signal);
    }
  }
}
