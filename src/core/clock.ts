/** Clocks, timers, and how often something may happen. */
import { byValue } from "./by-identity.ts";
import { findZone, zoneWords } from "./time-zone.ts";

/** Milliseconds since the epoch; injected, so that tests are deterministic. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();

/** Milliseconds since some moment, which no setting of the system's clock changes: for durations within this process. */
export const monotonicClock: Clock = () => performance.now();

/** Name of the server's time zone, such as `Asia/Tokyo`. Like commands, it takes UTC for a setting that names none. */
export const timeZone = (): string => resolveZone(process.env["TZ"] ?? "unset");

/** The zone by the setting that names it. */
const resolveZone = byValue(
  (setting: string) =>
    // The zone of the system is undefined on some, in spite of its type.
    findZone(
      setting === "unset"
        ? ((Intl.DateTimeFormat().resolvedOptions().timeZone as string | undefined) ?? "")
        : setting,
      "TZ",
    ) ?? "UTC",
);

/** Making one of these takes longer than all else of a note. */
const formatsIn = byValue((timeZone: string) => ({
  weekday: new Intl.DateTimeFormat("en", { timeZone, weekday: "long" }),
  time: new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }),
}));

/** A note for the model with the date, the time zone and the platform at the start of a run. */
export function startNote(now: number): string {
  const platforms: Readonly<Record<string, string>> = { darwin: "macOS", linux: "Linux", win32: "Windows" };
  const place = platforms[process.platform] ?? process.platform;
  const zone = timeZone();
  const { weekday, time } = formatsIn(zone);
  return `[Started on ${weekday.format(now)}, ${time.format(now).replace(" ", ", ")}, time zone ${zoneWords(zone)}, on ${place}]`;
}

/** Matches the note at the end of a task. */
export const START_NOTE = /\n\n\[Started on [^\n\]]*\]$/;

/** Longest delay of a timer, in milliseconds: a longer one ends at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Resolves after `milliseconds`. @throws the reason of `signal` as soon as it is aborted. */
export const pause = (milliseconds: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error); // aborted with errors only
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      },
      Math.min(milliseconds, LONGEST_TIMER_MS),
    );
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });

/** True if `work` ended within `milliseconds`. Rejects like `work` if it fails in that time. */
export async function isDoneWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.min(milliseconds, LONGEST_TIMER_MS));
  });
  return Promise.race([work.then(() => true), late]).finally(() => clearTimeout(timer));
}

/** ISO 8601 with milliseconds, UTC. */
export const isoTime = (milliseconds: number): string => new Date(milliseconds).toISOString();

/** Such as `2026-01-31 12:00 UTC`. */
export const shortTime = (milliseconds: number): string =>
  `${isoTime(milliseconds).slice(0, 16).replace("T", " ")} UTC`;

/**
 * Decides when something that is asked for often is sent. `send` is called with nothing: it sends whatever is newest by
 * then. `burst` of them may be sent at once after a quiet period, and then one every `everyMs`. `clock`: for durations.
 */
export function createPace(
  send: () => void,
  { burst, everyMs, clock }: { burst: number; everyMs: number; clock: Clock },
) {
  /** Messages sent so far have used up the time until here. */
  let usedUntil = -Infinity;
  let waiting: NodeJS.Timeout | undefined;
  let stopped = false;
  const sendNow = (): void => {
    waiting = undefined;
    usedUntil = Math.max(usedUntil, clock() - (burst - 1) * everyMs) + everyMs;
    send();
  };
  return {
    /** Sends at once, or when its turn has come, together with all that was asked for until then. */
    ask: (): void => {
      if (stopped || waiting !== undefined) return;
      const wait = usedUntil - clock();
      if (wait > 0) waiting = setTimeout(sendNow, wait);
      else sendNow();
    },
    /** After this nothing is sent any more. */
    stop: (): void => {
      stopped = true;
      clearTimeout(waiting);
    },
  };
}
