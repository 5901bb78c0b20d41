/** Carries out the statements of `logins.sql`, each in one transaction. */
import queries from "./logins.sql" with { type: "text" };
import { readQueries } from "./sql-files.ts";
import { type Engine, type Statement, all, change } from "./steps.ts";

const queryNamed = readQueries(queries);

export const loginRows = (engine: Engine) => ({
  read: <Row extends object>(query: string, values?: Statement["values"]): Promise<Row[]> =>
    engine.read(() => all<Row>(queryNamed(query), values)),
  /** Returns the number of changed rows. */
  change: (query: string, values: Statement["values"]): Promise<number> =>
    engine.write(() => change(queryNamed(query), values)),
});
