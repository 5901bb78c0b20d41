// The graph that langgraph.json names. The server brings the checkpointer and the store.
import { createAgent } from "./agent.js";

export const agent = createAgent({ checkpointer: true });
