/** Looks at places of the file system that may be missing, closed to this user, or below a file. */
import { type Stats, accessSync, constants, lstatSync, statSync } from "node:fs";
import { orElse } from "./errors.ts";

/** Returns undefined if the entry is missing or cannot be seen. */
export const statsAt = (path: string): Stats | undefined =>
  orElse(() => statSync(path, { throwIfNoEntry: false }), undefined);

/** Returns the stats of a link itself instead of its target. */
export const linkStatsAt = (path: string): Stats | undefined =>
  orElse(() => lstatSync(path, { throwIfNoEntry: false }), undefined);

/** True if this user may execute the file, or enter the folder. */
export const isExecutable = (path: string): boolean =>
  orElse(() => accessSync(path, constants.X_OK) === undefined, false);
