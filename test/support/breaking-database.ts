import type { Database } from "../../src/storage/sqlite/database.ts";
import { sqliteError } from "../../src/storage/sqlite/driver.ts";
import { watchStatements } from "./watched-database.ts";

/** How a connection breaks: its process is killed, or one statement fails and the process goes on. */
export type Breaking = "killed" | "failing";

export interface Breakable {
  /** From now on the statement with this number, from 1, is not carried out any more. */
  breakAt(number: number, how: Breaking): void;
  /** Whether it has broken. */
  readonly isBroken: boolean;
}

/** Lets `database` break between any two of its statements; to be called before any is prepared. */
export function breakable(database: Database): Breakable {
  let left = Number.POSITIVE_INFINITY;
  let breaking: Breaking = "killed";
  const state = {
    isBroken: false,
    breakAt: (number: number, how: Breaking): void => {
      left = number;
      breaking = how;
    },
  };
  const count = (): void => {
    left -= 1;
    if (left !== 0) return;
    state.isBroken = true;
    if (breaking === "failing") throw sqliteError("database or disk is full", "SQLITE_FULL");
    // What its transaction has done so far is undone, as when the process is gone.
    database.close();
  };
  watchStatements(database, count);
  return state;
}
