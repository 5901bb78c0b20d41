/** Severity, lowest first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Record<string, unknown>;

/** Structured logger; the first argument is a short event name, the second its facts. */
export interface Logger {
  debug(event: string, fields?: LogFields): void;
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
    (event: string, fields: LogFields = {}) => {
      if (LOG_LEVELS.indexOf(name) < threshold) return;
      write(`${serialize({ time: new Date().toISOString(), level: name, event, ...fields })}\n`);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** A logger that drops everything. */
export const silentLogger: Logger = createLogger("silent", () => {});

function serialize(record: LogFields): string {
  return JSON.stringify(record, (_key, value: unknown) =>
    value instanceof Error
      ? { name: value.name, message: value.message, stack: value.stack, cause: value.cause }
      : typeof value === "bigint"
        ? value.toString()
        : value,
  );
}
