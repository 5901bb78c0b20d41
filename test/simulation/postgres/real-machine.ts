/** Takes the place of `virtual-machine.ts` in worlds on a Postgres: time is real, and plans and agents are faster. */
import { setTimeout as delay } from "node:timers/promises";
import type { Place } from "../virtual-machine.ts";

export { generator } from "../random.ts";
export type { Place };

/** How much faster people, agents and faults are than in simulated worlds. */
export const SPEED = 3;

export const later = (ms = 0): Promise<void> => delay(ms / SPEED);
/** In real milliseconds, the same in all processes of the machine. No clock step changes it. */
export const worldTime = (): number => performance.timeOrigin + performance.now();
export const inPlace = <T>(_place: Place | undefined, work: () => T): T => work();
