import { type McpServer, ResourceNotFoundError } from "@modelcontextprotocol/server";
import { type ResourceScope, guarded, invalidParams } from "./resource.ts";
import { runIdOf } from "../contracts/uris.ts";

const MAX_SUBSCRIPTIONS = 1024;

/**
 * Answers `resources/subscribe` and `resources/unsubscribe` of one connection with a session. A resource may be
 * subscribed to before it exists, except a run, which has to be the principal's own.
 */
export function serveSubscriptions(
  mcp: McpServer,
  scope: Pick<ResourceScope, "runs" | "changes" | "logger" | "principal">,
): void {
  const subscribed = new Set<string>();
  mcp.server.setRequestHandler("resources/subscribe", async ({ params: { uri } }) => {
    const runId = runIdOf(uri);
    const mayExist = await guarded("resources/subscribe", scope, async () => {
      const runs = await scope.runs();
      return runId === undefined || (await runs.read.view(runId)) !== undefined;
    });
    if (!mayExist) throw new ResourceNotFoundError(uri);
    if (subscribed.size >= MAX_SUBSCRIPTIONS) {
      const message = `This connection has ${MAX_SUBSCRIPTIONS} subscriptions. Unsubscribe from some first.`;
      throw invalidParams(message);
    }
    subscribed.add(uri);
    scope.changes.follow(scope.principal, uri);
    return {};
  });
  mcp.server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    subscribed.delete(uri);
    return {};
  });
  const initialized = mcp.server.oninitialized;
  let isInitialized = false;
  mcp.server.oninitialized = () => {
    initialized?.();
    // One of several servers for a session is notified directly, and perhaps by the client too.
    if (isInitialized) return;
    isInitialized = true;
    forwardChanges(mcp, scope, (uri) => subscribed.has(uri));
  };
}

/**
 * Sends changes to the client of one lasting connection until it closes: those that are `wanted`, by default all.
 * In revisions without sessions the SDK drops those that the client does not listen to.
 */
export function forwardChanges(
  mcp: McpServer,
  { changes, logger, principal }: Pick<ResourceScope, "changes" | "logger" | "principal">,
  wanted: (uri: string) => boolean = () => true,
): void {
  const undelivered = (error: unknown): void => logger.debug("resources.notification_undelivered", { error });
  const detach = changes.attach(principal, {
    resourceUpdated: (uri) => {
      if (wanted(uri)) mcp.server.sendResourceUpdated({ uri }).catch(undelivered);
    },
    resourcesChanged: () => void mcp.server.sendResourceListChanged().catch(undelivered),
  });
  const closed = mcp.server.onclose;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is not an event target
  mcp.server.onclose = () => {
    detach();
    closed?.();
  };
}
