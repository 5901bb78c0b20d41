/** Takes the place of `src/core/process-mark.ts`: marks of simulated processes. */
import { currentPlace } from "./virtual-machine.ts";

/** `isKnown`: servers find out that others of their machine are gone. `gone`: names of killed places. */
export const machine = { isKnown: false, gone: new Set<string>() };

export const processMark = (): string => `.sim.${currentPlace()?.name ?? "people"}`;
export const isGone = (owner: string): boolean =>
  machine.isKnown && machine.gone.has(owner.split(".")[2] ?? "");
export const processStat = () => ({ state: "", parent: 0, group: 0, start: "" });
