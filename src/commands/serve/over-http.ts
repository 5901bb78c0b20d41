import type { Config } from "../../config/schema.ts";
import { tokenVerifier } from "../../server/auth-tokens.ts";
import { createAuthenticator, type Authenticator } from "../../server/auth.ts";
import { createServerFactory } from "../../server/create-server.ts";
import { serveHttp } from "../../server/http.ts";
import type { ServerParts } from "../server-deps.ts";
import { atMost, untilSignal } from "./process.ts";

/** After this the process ends, whatever is still closing. */
const CLOSE_MS = 850;

/** Listens until a signal comes; then parks what runs and releases everything. */
export async function serveOverHttp(
  { http }: Config,
  parts: ServerParts,
  listening: (url: string) => void,
): Promise<void> {
  const { deps } = parts;
  const { changes, logger } = deps;
  const signal = untilSignal();
  const authenticator = authenticatorOf(http);
  const server = await serveHttp({
    ...http,
    authenticator,
    factory: createServerFactory(deps),
    changes,
    logger,
  });
  process.stderr.write(`Serving MCP at ${server.url}\n`);
  listening(server.url);
  // A run that an earlier process left is taken up again, whether or not a client comes.
  deps.runs().catch((error: unknown) => logger.error("runs.not_opened", { error }));
  logger.info("server.closing", { reason: await signal });
  await atMost(
    CLOSE_MS,
    server.close().then(() => parts.close()),
  );
}

/** Whoever configures tokens wants every request to carry one, on loopback as well. */
function authenticatorOf({ tokens }: Config["http"]): Authenticator | undefined {
  if (tokens.length === 0) return undefined;
  return createAuthenticator({ verifiers: [tokenVerifier(tokens)] });
}
