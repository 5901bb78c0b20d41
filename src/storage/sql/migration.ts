/** One step of a component's schema, made in one transaction. Once released it never changes. */
export interface Migration {
  /** Counts from 1 without gaps. */
  version: number;
  name: string;
  sql: string;
  /** True if other engines count this step without making it. */
  isForSqlite?: true;
}
