#!/usr/bin/env bash
# @langchain/langgraph-checkpoint-sqlite 1.0.4 with @langchain/langgraph 1.7.3: the newest checkpoint of a thread is the one
# with the highest id, and ids begin with the time. If the clock of the machine is set back between two processes, by a
# minute here, the turns that follow are stored below the older ones: each run returns its own messages, and the next one
# does not know them, until the clock has caught up.
# A good guess is that the newest checkpoint is the one that was stored last, or the end of the chain of parents.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/core@1.4.0 @langchain/langgraph@1.7.3 @langchain/langgraph-checkpoint-sqlite@1.0.4
cat >run.mjs <<'JS'
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

const [text, secondsBack] = process.argv.slice(2);
// The clock of this process, as after it was set back.
const clock = Date.now.bind(Date);
Date.now = () => clock() - Number(secondsBack) * 1000;
const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", ({ messages }) => ({ messages: [{ role: "assistant", content: `to ${messages.at(-1).content}` }] }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile({ checkpointer: SqliteSaver.fromConnString("thread.db") });
const thread = { configurable: { thread_id: "1" } };
const { messages } = await graph.invoke({ messages: [{ role: "user", content: text }] }, thread);
console.log(messages.map(({ content }) => content).join(", "));
JS
first=$(node run.mjs one 0)
second=$(node run.mjs two 60)
third=$(node run.mjs three 50)
printf 'first run:                        %s\nsecond run, a minute earlier:     %s\nthird run, ten seconds later:     %s\n' "$first" "$second" "$third"
if [ "$second" != "one, to one, two, to two" ] || [ "$third" != "one, to one, three, to three" ]; then
  echo "The behavior has changed." >&2
  exit 1
fi
