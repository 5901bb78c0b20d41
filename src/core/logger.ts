import { headOf, showControl } from "./text.ts";

/** Severity, lowest first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Record<string, unknown>;

/** Structured logger; the first argument is a short event name, the second its facts. */
export interface Logger {
  /** A function is called only when the line is written, which saves the work for its fields. */
  debug(event: string, fields?: LogFields | (() => LogFields)): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

/** JSON lines through `write` (standard error by default: standard output belongs to the protocol). */
export function createLogger(
  level: LogLevel,
  write: (line: string) => void = (line) => void process.stderr.write(line),
): Logger {
  const threshold = LOG_LEVELS.indexOf(level);
  const at =
    (name: LogLevel) =>
    (event: string, fields: LogFields | (() => LogFields) = {}) => {
      if (LOG_LEVELS.indexOf(name) < threshold) return;
      const facts = typeof fields === "function" ? fields() : fields;
      write(`${serialize({ time: new Date().toISOString(), level: name, event, ...facts })}\n`);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

export const silentLogger: Logger = createLogger("silent", () => {});

/** Cuts long texts: an error may quote all that came from outside. */
function serialize(record: LogFields): string {
  const json = JSON.stringify(record, (_key, value: unknown) =>
    value instanceof Error
      ? { name: value.name, message: value.message, stack: value.stack, cause: value.cause }
      : typeof value === "bigint"
        ? value.toString()
        : typeof value === "string"
          ? headOf(value, 16_384)
          : value,
  );
  // It stays the same JSON, and steers no terminal that it is read in.
  return showControl(json);
}
