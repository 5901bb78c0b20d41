import { z } from "zod";
import { defineTool } from "../protocol/tool.ts";

export const searchMemories = defineTool({
  name: "search_memories",
  title: "Search memories",
  kind: "read",
  scopes: ["read"],
  description: "Finds what earlier runs kept in /memories/, best first. read_agent_file reads a whole file.",
  input: z.strictObject({
    query: z.string().min(1).max(500),
    limit: z.int().min(1).max(50).default(10),
  }),
  output: z.object({
    memories: z.array(z.object({ path: z.string(), snippet: z.string(), score: z.number() })),
  }),
  handle: async ({ query, limit }, { runs, principal }) => ({
    kind: "memories",
    query,
    ...(await runs.searchMemories(principal, query, limit)),
  }),
});
