import type { ExecuteResponse } from "../backend.ts";
import type { CommandOutput } from "./command-output.ts";

const TIMEOUT_EXIT_CODE = 124;

/** The answer for a command that was ended at its time limit, of so many seconds. */
export function timedOutResponse(output: CommandOutput, timeout: number): ExecuteResponse {
  return {
    ...written(output),
    output: withLine(outputText(output), `Error: Command timed out after ${timeout} seconds.`),
    exitCode: TIMEOUT_EXIT_CODE,
    timedOut: true,
  };
}

/** What a response says of the output of a command. */
export function written(output: CommandOutput): Pick<ExecuteResponse, "output" | "truncated" | "whole"> {
  const { text, isCut, bytes } = output.whole() ?? {};
  const whole = isCut === true ? withLine(text ?? "", cutAt(bytes ?? 0)) : text;
  const { truncated } = output;
  return { output: outputText(output), truncated, ...(whole === undefined ? {} : { whole }) };
}

const cutAt = (bytes: number): string => `... Output truncated at ${bytes} bytes.`;

/** The output, and where it was cut. */
export function outputText(output: CommandOutput): string {
  const text = output.text();
  return output.truncated ? withLine(text, cutAt(output.limit)) : text;
}

export const withLine = (text: string, line: string): string =>
  text === "" || text.endsWith("\n") ? text + line : `${text}\n${line}`;

/** Which came first, the end of so many seconds or of the signal; stays open when `settled` aborts before. */
export function stopReason(
  timeout: number,
  signal: AbortSignal | undefined,
  settled: AbortSignal,
): Promise<"timeout" | "aborted"> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve("timeout"), timeout * 1000);
    settled.addEventListener("abort", () => clearTimeout(timer), { once: true });
    if (signal === undefined) return;
    if (signal.aborted) resolve("aborted");
    else signal.addEventListener("abort", () => resolve("aborted"), { once: true, signal: settled });
  });
}
