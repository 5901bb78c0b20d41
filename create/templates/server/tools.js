// Tools of your own, as an MCP server that the agent starts: deepagent.json names it.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { countWords } from "./count-words.js";

serveStdio(() => {
  const server = new McpServer({ name: "words", version: "1.0.0" });
  server.registerTool(
    "count_words",
    {
      description: "Counts the words of a text.",
      inputSchema: z.object({ text: z.string() }),
      // A tool without this mark is approved by a person, each time.
      annotations: { readOnlyHint: true },
    },
    ({ text }) => ({ content: [{ type: "text", text: `${countWords(text)} words` }] }),
  );
  return server;
});
