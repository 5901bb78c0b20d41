/** Work of our own code, counted: no load of the machine changes it. It comes before the imports of that code. */
import { Session } from "node:inspector/promises";
import { setFlagsFromString } from "node:v8";
import { afterAll } from "vitest";

const SOURCES = /\/src\/.*\.ts/;

// Functions are counted block by block only if they are compiled after this, whatever other test files have compiled.
setFlagsFromString("--no-compilation-cache");
const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
afterAll(() => {
  session.disconnect();
  setFlagsFromString("--compilation-cache");
});

/** Executions of the blocks of our sources while `work` runs. What JavaScript itself does in one call counts nothing. */
export async function workOf(work: () => unknown): Promise<number> {
  await session.post("Profiler.takePreciseCoverage");
  await work();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const functions = result.filter(({ url }) => SOURCES.test(url)).flatMap((script) => script.functions);
  return functions.flatMap(({ ranges }) => ranges).reduce((sum, { count }) => sum + count, 0);
}

/** How many times as much work four times the input takes: about 4 if the work is linear, 16 if it is quadratic. */
export async function growth(size: number, work: (size: number) => unknown): Promise<number> {
  await work(size);
  const once = await workOf(() => work(size));
  return (await workOf(() => work(4 * size))) / once;
}
