// What a bundler for browsers gets. CommonJS has no list of names, so every import of a name gets this far.
throw new Error(
  "deepagent-mcp runs on Node only: it reads files and starts processes. Keep createDeepAgent on a server, " +
    "and talk to it from the page with @langchain/langgraph-sdk, or over MCP.",
);
