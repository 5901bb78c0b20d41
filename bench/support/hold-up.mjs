import { performance } from "node:perf_hooks";

/** How long `run` takes, and how long it keeps other work from its turn at most, in milliseconds. */
export async function held(run) {
  let last = performance.now();
  let longest = 0;
  let running = true;
  const look = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (running) setImmediate(look);
  };
  const start = performance.now();
  setImmediate(look);
  const result = await run();
  if (result?.error !== undefined) throw new Error(result.error);
  const time = performance.now() - start;
  await new Promise(setImmediate);
  running = false;
  return { time, longest };
}
