import type { Config } from "../../config/schema.ts";
import type { Logger } from "../../core/logger.ts";

export interface RunSettings {
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger;
  /** Whether MCP clients can lend their models. Default false. */
  lendable?: boolean;
  /** Whether this process forgets runs as configured, now and every hour, and embeds memories. Default true. */
  keepsHouse?: boolean;
}
