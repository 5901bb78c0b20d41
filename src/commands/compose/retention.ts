import type { Config } from "../../config/schema.ts";
import type { Retention } from "../../runs/ports.ts";

/** What the configuration says about runs that are over, as the run service takes it. */
export function retentionOf({ retention: { days, megabytes } }: Pick<Config, "retention">): Retention {
  return {
    ...(days === undefined ? {} : { maxAgeMs: days * 86_400_000 }),
    ...(megabytes === undefined ? {} : { maxBytes: megabytes * 1_000_000 }),
  };
}
