/** Turns the SQL of steps, which SQLite and Postgres both take, into that of one of them. */

export interface PlacedSql {
  text: string;
  /** Names of the values in the order of their places. */
  names: readonly string[];
}

const ROWS = /\bjson_rows\((@\w+)\)/g;
const PARAMETER = /@(\w+)/g;
/** Class of the locks in Postgres that are held while the owner of leases is connected; any number. */
export const CONNECTED_LOCK = 1_904_113_207;

/** Leaves out locks of rows, because a transaction that writes has the whole database. It knows of no connections. */
export function inSqlite(sql: string): PlacedSql {
  const names: string[] = [];
  const text = sql
    .replace(/ FOR (UPDATE|SHARE)( SKIP LOCKED)?\b/g, "")
    .replace(ROWS, "json_each($1)")
    .replace(/\bis_connected\(\w+\)/g, "NULL")
    .replace(PARAMETER, (_, name: string) => (names.push(name), "?"));
  return { text, names };
}

/** Leaves out hints for an index, and reads lists of texts and of records as JSON. */
export function inPostgres(sql: string): PlacedSql {
  const names: string[] = [];
  const text = sql
    .replace(/ INDEXED BY \w+/g, "")
    .replace(ROWS, "jsonb_array_elements($1::jsonb)")
    .replace(
      /\bis_connected\((\w+)\)/g,
      `hashtext($1)::oid IN (SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = ${CONNECTED_LOCK})`,
    )
    .replace(/\bjson_each\((@\w+)\)/g, "jsonb_array_elements_text($1::jsonb)")
    .replace(PARAMETER, (_, name: string) => {
      if (!names.includes(name)) names.push(name);
      return `$${names.indexOf(name) + 1}`;
    });
  return { text, names };
}
