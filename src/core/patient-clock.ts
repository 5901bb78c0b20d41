import type { Clock } from "./clock.ts";

/** A difference that needs no setting of the clock to come about, in milliseconds. */
const LEAP_MS = 60_000;
/** A clock that was set ahead is believed when it has stayed there for so long, in milliseconds. */
const PATIENCE_MS = 600_000;

/**
 * The time of `clock`, but for the first ten minutes after it was set ahead: then the time goes on as before. What
 * a deadline decides cannot be taken back when the clock is put right again. `machine` counts the time the machine
 * is on, its sleep included, in milliseconds: the time slept is no leap.
 */
export function patientClock(clock: Clock, machine: Clock): Clock {
  let believed = { time: clock(), at: machine() };
  let leaptAt: number | undefined;
  return () => {
    const [now, at] = [clock(), machine()];
    const expected = believed.time + at - believed.at;
    if (now - expected > LEAP_MS) {
      leaptAt ??= at;
      if (at - leaptAt < PATIENCE_MS) return expected;
    }
    leaptAt = undefined;
    believed = { time: now, at };
    return now;
  };
}
