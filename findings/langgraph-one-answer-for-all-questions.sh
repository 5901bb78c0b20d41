#!/usr/bin/env bash
# @langchain/langgraph 1.7.3: two nodes of one step each ask a person with `interrupt`. `new Command({ resume: "yes" })`
# answers both with the same value, so that an answer to one question is taken for the other one too.
# A good guess is that it is refused, or that it counts for one question and the other one stays open.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/core@1.4.0 @langchain/langgraph@1.7.3
cat >run.mjs <<'JS'
import { Annotation, Command, END, MemorySaver, START, StateGraph, interrupt } from "@langchain/langgraph";

const State = Annotation.Root({ said: Annotation({ reducer: (all, more) => [...all, ...more], default: () => [] }) });
const ask = (question) => () => ({ said: [`${question} ${interrupt(question)}`] });
const graph = new StateGraph(State)
  .addNode("small", ask("Delete the draft?"))
  .addNode("large", ask("Delete the database?"))
  .addEdge(START, "small")
  .addEdge(START, "large")
  .addEdge("small", END)
  .addEdge("large", END)
  .compile({ checkpointer: new MemorySaver() });
const thread = { configurable: { thread_id: "1" } };
const waiting = (await graph.invoke({}, thread)).__interrupt__.map(({ value }) => value);
const { said } = await graph.invoke(new Command({ resume: "yes" }), thread);
console.log("waiting:", waiting.join(" "));
console.log("after one answer:", said.join(", "));
if (waiting.length !== 2 || said.toSorted().join() !== "Delete the database? yes,Delete the draft? yes") {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
