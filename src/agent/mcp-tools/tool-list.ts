/** Reads the tool list of a server page by page, as long as pages have new tools and memory for them is left. */
import type { Tool } from "@modelcontextprotocol/client";
import { type LeftOutTool, readTool } from "./answers.ts";

/** Characters that a server's list may take. Each entry counts more, for the objects that are made of it. */
const MOST_CHARACTERS = 200_000_000;
const PER_ENTRY = 2000;
/** Pages in a row without a new tool after which a list is taken for one without end. */
const MOST_IDLE_PAGES = 8;
/** Tools that cannot be offered and are named. */
const MOST_LEFT_OUT = 50;

const OTHERS: LeftOutTool = { tool: "(more tools)", reason: "they cannot be offered either" };

/** Requests a page. */
type AskPage = (params: { cursor: string }, signal: AbortSignal) => Promise<Page>;
type Page = Record<string, unknown>;

/** A list that is being read, or was read. */
export class ToolList {
  readonly tools: Tool[] = [];
  /** Tools that cannot be offered. The first are named. */
  readonly leftOut: LeftOutTool[] = [];
  readonly #stopped = new AbortController();
  /** False when the list has ended. */
  readonly end: Promise<false>;

  /** `first`: the first page. `reason` describes the error of a later one, which costs the rest of the list. */
  constructor(first: Page, ask: AskPage, reason: (error: unknown) => string) {
    this.end = this.#read(first, ask)
      .catch(reason)
      .then((problem) => {
        if (problem !== undefined) this.leftOut.push(furtherTools(problem));
        return false;
      });
  }

  /** Stops reading a list for which nobody waits anymore. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Returns the reason why there may be more. */
  async #read(first: Page, ask: AskPage): Promise<string | undefined> {
    const [names, cursors] = [new Set<string>(), new Set<string>()];
    let room = MOST_CHARACTERS;
    for (let [page, idle] = [first, 0]; ;) {
      const entries = [page["tools"] ?? []].flat();
      idle += 1;
      for (const one of entries.map(readTool)) {
        if (!("name" in one)) {
          const { length } = this.leftOut;
          if (length <= MOST_LEFT_OUT) this.leftOut.push(length < MOST_LEFT_OUT ? one : OTHERS);
        }
        // The first tool of each name counts.
        else if (!names.has(one.name)) {
          names.add(one.name);
          this.tools.push(one);
          idle = 0;
        }
      }
      room -= JSON.stringify(page).length + entries.length * PER_ENTRY;
      const cursor = page["nextCursor"];
      // Some servers return their last cursor again, and the last page with it.
      if (typeof cursor !== "string" || cursor === "" || (idle > 0 && cursors.has(cursor))) return undefined;
      if (idle >= MOST_IDLE_PAGES) return `${idle} pages of its list in a row had no new tool`;
      if (room < 0) return "its list takes too much memory";
      cursors.add(cursor);
      page = await ask({ cursor }, this.#stopped.signal);
    }
  }
}

/** Stands for the tools on pages that were not read. */
export const furtherTools = (reason: string): LeftOutTool => ({ tool: "(further tools)", reason });
