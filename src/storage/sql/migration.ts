/**
 * One step of a component's schema. Once released it never changes; the next change is a new step. It is made in
 * a transaction: either all of it happens or nothing.
 */
export interface Migration {
  /** Counts from 1 without gaps. */
  version: number;
  name: string;
  /** Statements. */
  sql: string;
  /** True if other engines count this step without making it. */
  isForSqlite?: true;
}
