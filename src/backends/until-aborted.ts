/** The result, or undefined when the signal came first; then nobody waits for the call any more. */
export async function untilAborted<Result>(
  call: () => Result | Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result | undefined> {
  if (signal === undefined) return call();
  let stop = (): void => {};
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([call(), aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
