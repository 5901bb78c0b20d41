import { onTestFinished, vi } from "vitest";

/**
 * Until the test is over, time also passes when the test says so: for `setTimeout`, `AbortSignal.timeout` and the
 * monotonic clock. A limit of an hour is then reached at one certain moment, however busy the machine is.
 */
export function handSetTime(): { pass(milliseconds: number): void } {
  if (vi.isFakeTimers()) throw new Error("Time is set already: what waits for it would be forgotten.");
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "performance"],
    shouldAdvanceTime: true,
    // Of what began before.
    shouldClearNativeTimers: true,
  });
  const timeout = vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => {
    const controller = new AbortController();
    const end = (): void => controller.abort(new DOMException("The time is over", "TimeoutError"));
    setTimeout(end, milliseconds);
    return controller.signal;
  });
  onTestFinished(() => {
    timeout.mockRestore();
    vi.useRealTimers();
  });
  return { pass: (milliseconds) => void vi.advanceTimersByTime(milliseconds) };
}
