import type { Database } from "./database.ts";
import { type Apart, failure, type Rewrite } from "./migration.ts";
import { inThread } from "./sql-thread.ts";

/** In one transaction, unless another process was faster. `work` is the source of what the step does. */
const stepOf = (work: string): string => `(database, component, version, sql) => database.transaction(() => {
  const known = database.prepare("SELECT version FROM schema_versions WHERE component = ?").pluck().get(component);
  if (known !== version - 1) return;
  ${work}
  database.prepare("UPDATE schema_versions SET version = ? WHERE component = ?").run(version, component);
}).immediate()`;

/** The sources of functions, each under the name the others have for it. */
const sourceOf = ({ rewrite, uses }: Rewrite): string => `
  ${uses.map(String).join("\n")}
  (${String(rewrite)})(database, { ...require("node:crypto"), ...require("node:zlib") });`;

/** Makes the step in a file that has tables of the component, by a thread; `timeout`: for locks, in milliseconds. */
export async function makeInThread(
  database: Database,
  component: string,
  step: Apart,
  timeout: number,
): Promise<void> {
  const isSql = "sql" in step;
  const work = stepOf(isSql ? "database.exec(sql);" : sourceOf(step));
  const values = [component, step.version, isSql ? step.sql : ""];
  try {
    await inThread({ file: database.name, work, values, timeout });
  } catch (thrown) {
    throw failure(database, component, step, thrown);
  }
}
