import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Milliseconds this thread has had of a processor: on a busy machine most of a long turn is others'. */
export function threadTime() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } catch {
    return NaN; // not Linux
  }
}

/** Every turn of the event loop while `work` is at work: how long it took, and of that on a processor. */
export async function turnsDuring(work) {
  const lengths = [];
  const busy = [];
  const over = new AbortController();
  const watching = (async () => {
    for (let [last, used] = [performance.now(), threadTime()]; !over.signal.aborted;) {
      await nextTurn();
      const [now, usedNow] = [performance.now(), threadTime()];
      lengths.push(now - last);
      busy.push(usedNow - used);
      [last, used] = [now, usedNow];
    }
  })();
  try {
    await work();
  } finally {
    over.abort();
  }
  await watching;
  const ascending = (values) => values.toSorted((a, b) => a - b);
  return { lengths: ascending(lengths), busy: ascending(busy) };
}

/** Runs cases of name and work, one after the other, and prints a row for each. */
export async function printTurns(cases) {
  console.log("| work | turns of the loop | p99 (ms) | longest (ms) | most CPU in one (ms) |");
  console.log("|---|---|---|---|---|");
  for (const [name, work] of cases) {
    const { lengths, busy } = await turnsDuring(work);
    const at = (values, share) =>
      values[Math.min(values.length - 1, Math.floor(values.length * share))].toFixed(1);
    console.log(`| ${[name, lengths.length, at(lengths, 0.99), at(lengths, 1), at(busy, 1)].join(" | ")} |`);
  }
}
