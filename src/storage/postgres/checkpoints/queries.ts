import { readQueries } from "../../../runs/sql/sql-files.ts";
import queries from "./queries.sql" with { type: "text" };

export const sql = readQueries(queries);
