import { z } from "zod";
import { displayName, oneLine, stripControl } from "../core/text.ts";
import { cancellable } from "./call.ts";
import { withNotices } from "./format.ts";
import { defineTool } from "./tool.ts";

const LIMIT = 10;

export interface FoundMemories {
  /** Best first. */
  hits: readonly { path: string; snippet: string }[];
  /** Omissions of the search, and their reason. */
  note?: string;
}

/** Finds memories by meaning, for agents with semantic memory search. */
export const searchMemoriesTool = (search: (query: string, limit: number) => Promise<FoundMemories>) =>
  defineTool({
    name: "search_memories",
    kind: "read",
    description: `Find files below /memories/ by words and by meaning. Returns the best ${LIMIT} at most, each path with an excerpt; read_file reads a whole one. For exact text, use grep.`,
    schema: z.strictObject({
      query: z.string().min(1).max(500).describe("Words, or a topic"),
    }),
    handle: ({ query }, { signal }) =>
      cancellable("search_memories", signal, async () => {
        const { hits, note } = await search(query, LIMIT);
        const lines = hits.map(({ path, snippet }) => `${displayName(path)}\n${stripControl(snippet)}`);
        const none = `No memory matches ${JSON.stringify(oneLine(query, 200))}`;
        return {
          content: withNotices(lines.join("\n\n") || none, note === undefined ? [] : [`[${note}]`]),
          artifact: { query, paths: hits.map(({ path }) => path) },
        };
      }),
  });
