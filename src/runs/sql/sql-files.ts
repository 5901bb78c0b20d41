/** Reads `.sql` files: migrations, and queries by their names. */

/** One step of a component's schema, made in one transaction. Once released it never changes. */
export interface Migration {
  /** Counts from 1 without gaps. */
  version: number;
  name: string;
  sql: string;
  /** True if other engines count this step without making it. */
  isForSqlite?: true;
}

/** Reads a component's steps. Each begins with a line such as `-- Version 3: names of runs`. */
export function readMigrations(sql: string): Migration[] {
  const parts = sql.split(/^-- Version (\d+)( \(SQLite only\))?: (.*)\n/m).slice(1);
  return Array.from({ length: parts.length / 4 }, (_, index) => {
    const [version, forSqlite, name = "", text = ""] = parts.slice(index * 4);
    return { version: Number(version), name, sql: text, ...(forSqlite && { isForSqlite: true }) };
  });
}

/** Reads a file of queries. Each begins with a line such as `-- Query: newest checkpoint`; its other comments are left out. */
export function readQueries(sql: string): (name: string) => string {
  const parts = sql.split(/^-- Query: (.*)\n/m).slice(1);
  const queries = new Map<string | undefined, string>();
  for (let at = 0; at < parts.length; at += 2)
    queries.set(parts[at], (parts[at + 1] ?? "").replaceAll(/^--.*\n/gm, "").trim());
  return (name) => {
    const query = queries.get(name);
    if (query === undefined) throw new Error(`The file has no query "${name}".`);
    return query;
  };
}
