import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { allows } from "./auth/scopes.ts";
import { APPS_EXTENSION } from "./app/run-app.ts";
import type { Era, ServerDeps } from "./deps.ts";
import type { ClientName } from "./delivery/client-windows.ts";
import { TASKS_EXTENSION } from "./tasks/view.ts";

/** What a client declared about itself, as far as deliveries differ by it. */
export interface ClientFacts {
  era: Era;
  /** It is asked for approvals in forms: it shows them, and its token may decide on approvals. */
  forms: boolean;
  /** It is asked on the local page: it opens addresses, there is a page, and its token may decide. */
  page: boolean;
  /** It knows the Tasks extension of 2026-07-28. */
  tasks: boolean;
  /** Who it says it is. */
  name?: ClientName | undefined;
  /** It renders MCP Apps. */
  apps: boolean;
  /** It lends its model: samples messages with tools, and its token may work on runs. */
  models: boolean;
}

/** 2026-07-28 clients declare with every request, 2025-era clients once, in the handshake. */
export function clientFacts(
  mcp: McpServer,
  context: ServerContext,
  { era, deps }: { era: Era; deps: Pick<ServerDeps, "config" | "page"> },
): ClientFacts {
  const envelope: Record<string, unknown> | undefined = context.mcpReq.envelope;
  const declared =
    era === "modern" ? envelope?.[CLIENT_CAPABILITIES_META_KEY] : mcp.server.getClientCapabilities();
  const info = era === "modern" ? envelope?.[CLIENT_INFO_META_KEY] : mcp.server.getClientVersion();
  const mayDecide = allows(context.http?.authInfo, "approve");
  // The page shows the journal too.
  const mayLook = allows(context.http?.authInfo, "read");
  const canOpen = mayDecide && mayLook && deps.page !== undefined && declaresUrls(declared);
  const hasForms = mayDecide && declaresForms(declared);
  const page = canOpen && (!hasForms || deps.config.delivery.ask === "page");
  return {
    era,
    forms: hasForms && !page,
    page,
    tasks: era === "modern" && declaresExtension(declared, TASKS_EXTENSION),
    name: Info.safeParse(info).data,
    apps: declaresExtension(declared, APPS_EXTENSION),
    models: declaresModels(declared) && allows(context.http?.authInfo, "run"),
  };
}

/** Without tools a model cannot do the work of an agent. */
function declaresModels(capabilities: unknown): boolean {
  return Sampling.safeParse(capabilities).success;
}

/** An empty `elicitation` means forms, as in the revisions that knew nothing else. */
export function declaresForms(capabilities: unknown): boolean {
  const elicitation = Capabilities.safeParse(capabilities).data?.elicitation;
  if (elicitation === undefined) return false;
  return elicitation["form"] !== undefined || Object.keys(elicitation).length === 0;
}

export function declaresUrls(capabilities: unknown): boolean {
  return Capabilities.safeParse(capabilities).data?.elicitation?.["url"] !== undefined;
}

function declaresExtension(capabilities: unknown, extension: string): boolean {
  return Extensions.safeParse(capabilities).data?.extensions[extension] !== undefined;
}

const Capabilities = z.looseObject({ elicitation: z.looseObject({}).optional() });
const Sampling = z.looseObject({ sampling: z.looseObject({ tools: z.looseObject({}) }) });
const Info = z.object({ name: z.string().max(200), version: z.string().max(200).catch("") });
const Extensions = z.looseObject({ extensions: z.record(z.string(), z.unknown()) });
