/** Work of our own code, counted: no load of the machine changes it. */
import { Session } from "node:inspector/promises";

const SOURCES = /\/src\/.*\.ts/;

// Functions are counted block by block only if they are first called after this.
const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });

/** Executions of the blocks of our sources while `work` runs. What JavaScript itself does in one call counts nothing. */
async function workOf(work: () => unknown): Promise<number> {
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
