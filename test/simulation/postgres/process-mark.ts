/** Takes the place of `src/core/process-mark.ts`: processes of one machine, or of several. */
import { isAlive } from "../../../src/core/child-process.ts";

/** `isKnown`: servers find out that others of their machine are gone. */
export const machine = { isKnown: false };

export const processMark = (): string => markOf(process.pid);
export const markOf = (pid: number): string => `.sim.${pid}`;
export const isGone = (owner: string): boolean =>
  machine.isKnown && !isAlive(Number(owner.split(".")[2] ?? process.pid));
export const processStart = (): string => "";
