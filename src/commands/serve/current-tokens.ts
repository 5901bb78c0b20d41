import type { TokenConfig } from "../../config/http-schema.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Logger } from "../../core/logger.ts";

/** How often the configuration is read again. */
const INTERVAL_MS = 5000;

export interface FollowOptions {
  load: () => LoadedConfig;
  logger: Logger;
  changed: () => Promise<void>;
}

/** The tokens of the configuration as it is now, so that one can be taken away without a restart. */
export class CurrentTokens {
  #tokens: readonly TokenConfig[];

  constructor(tokens: readonly TokenConfig[]) {
    this.#tokens = tokens;
  }

  get tokens(): readonly TokenConfig[] {
    return this.#tokens;
  }

  /** Looks for changes until stopped. While the configuration has mistakes, what was there before holds. */
  follow({ load, logger, changed }: FollowOptions): { stop(): void } {
    let problems = "";
    const look = async (): Promise<void> => {
      const loaded = load();
      const found = loaded.ok ? "" : loaded.problems.join("; ");
      if (found !== "" && found !== problems) logger.warn("config.not_reloaded", { problems: found });
      problems = found;
      if (!loaded.ok) return;
      const { tokens } = loaded.config.http;
      if (JSON.stringify(tokens) === JSON.stringify(this.#tokens)) return;
      this.#tokens = tokens;
      logger.info("auth.tokens_changed", { tokens: tokens.length });
      await changed();
    };
    const timer = setInterval(() => {
      look().catch((error: unknown) => logger.warn("config.not_reloaded", { error }));
    }, INTERVAL_MS).unref();
    return { stop: () => clearInterval(timer) };
  }
}
