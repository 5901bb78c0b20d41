// The agents that are compared, each with its own SQLite checkpointer and everything else at its defaults.
import { ToolMessage } from "@langchain/core/messages";
import {
  Annotation,
  DeltaChannel,
  END,
  START,
  Send,
  StateGraph,
  messagesDeltaReducer,
} from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import SqliteDatabase from "better-sqlite3";
import { createDeepAgent as createTheirs } from "deepagents";
import { createCheckpointer, createDeepAgent, openDatabase } from "../../dist/index.js";

export const OURS = {
  name: "deepagent-mcp",
  /** As the server opens it. */
  open: (file) => openDatabase(file, { synchronous: "NORMAL" }),
  checkpointer: createCheckpointer,
  create: ({ model, checkpointer, parallel = 8 }) =>
    createDeepAgent({
      model,
      limits: { parallelSubagents: parallel, parallelTools: parallel },
      ...(checkpointer ? { checkpointer } : {}),
    }),
};

export const DEEPAGENTS = {
  name: "deepagents 1.14.1",
  open: (file) => new SqliteDatabase(file),
  checkpointer: (database) => new SqliteSaver(database),
  create: ({ model, checkpointer }) => createTheirs({ model, ...(checkpointer ? { checkpointer } : {}) }),
};

const stateOf = () =>
  Annotation.Root({
    messages: () => new DeltaChannel(messagesDeltaReducer, { snapshotFrequency: 5000 }),
    call: Annotation(),
  });

/** An agent and a task for each of its calls, in plain LangGraph, without anything else. */
function plainAgent(model, tools, checkpointer) {
  const bound = model.bindTools(tools);
  const act = async ({ call }, config) => {
    const content = await tools.find(({ name }) => name === call.name).run(config);
    return { messages: [new ToolMessage({ content, name: call.name, tool_call_id: call.id })] };
  };
  return new StateGraph(stateOf())
    .addNode("agent", async ({ messages }) => ({ messages: [await bound.invoke(messages)] }))
    .addNode("tools", act)
    .addEdge(START, "agent")
    .addConditionalEdges(
      "agent",
      ({ messages }) => {
        const calls = messages.at(-1).tool_calls ?? [];
        return calls.length > 0 ? calls.map((call) => new Send("tools", { call })) : END;
      },
      ["tools", END],
    )
    .addEdge("tools", "agent")
    .compile(checkpointer ? { checkpointer } : {});
}

/** The same graph without what an agent needs besides, with LangGraph's saver: as little as a step can cost. */
export const FLOOR = {
  name: "plain LangGraph",
  open(file) {
    const database = new SqliteDatabase(file);
    database.pragma("journal_mode = WAL");
    database.pragma("synchronous = NORMAL");
    return database;
  },
  checkpointer: DEEPAGENTS.checkpointer,
  create({ model, checkpointer }) {
    const ls = { name: "ls", run: async () => "(empty)" };
    const nested = plainAgent(model, [ls]);
    const task = {
      name: "task",
      async run(config) {
        const state = await nested.invoke({ messages: [{ role: "user", content: "List." }] }, config);
        return state.messages.at(-1).text;
      },
    };
    return plainAgent(model, [ls, task], checkpointer);
  },
};

/** The median of what `measure` returns for each of `peers` in so many rounds, taken in turns. */
export async function inTurns(peers, rounds, measure) {
  const all = peers.map(() => []);
  for (let round = 0; round < rounds; round += 1)
    for (const [index, peer] of peers.entries()) all[index].push(await measure(peer));
  return all.map((results) => {
    const median = (key) => results.map((one) => one[key]).toSorted((a, b) => a - b)[(rounds - 1) >> 1];
    return Object.fromEntries(Object.keys(results[0]).map((key) => [key, median(key)]));
  });
}
