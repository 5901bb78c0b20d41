import {
  CLIENT_CAPABILITIES_META_KEY,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { allows } from "../auth-scopes.ts";
import { APPS_EXTENSION } from "../app/run-app.ts";
import type { Era } from "../deps.ts";
import { elicitDelivery } from "./elicit.ts";
import { handleDelivery } from "./handle.ts";
import { TASKS_EXTENSION } from "../tasks-view.ts";
import { inputRequiredDelivery } from "./input-required.ts";
import type { Delivery } from "./session.ts";
import { taskDelivery } from "./task.ts";

/** What a client declared about itself, as far as deliveries differ by it. */
export interface ClientFacts {
  era: Era;
  /** It can show a form to a person, and its token may decide on approvals. */
  forms: boolean;
  /** It knows the Tasks extension of 2026-07-28. */
  tasks: boolean;
  /** It renders MCP Apps. */
  apps: boolean;
  /** It lends its model: samples messages with tools, and its token may work on runs. */
  models: boolean;
}

export type DeliveryName = "task" | "input_required" | "elicit" | "handle";

export const DELIVERIES: Readonly<Record<DeliveryName, Delivery>> = {
  task: taskDelivery,
  input_required: inputRequiredDelivery,
  elicit: elicitDelivery,
  handle: handleDelivery,
};

/**
 * The best way for this client. Chosen before anything is answered, by capability and never by name.
 * `asTask`: whether this call may answer with a task; `lends`: whether runs here ask for the client's model.
 */
export function chooseDelivery(
  client: Pick<ClientFacts, "era" | "forms" | "tasks" | "models">,
  { asTask, lends }: DeliveryWishes,
): DeliveryName {
  const { era, forms, tasks, models } = client;
  const serves = lends && models;
  if (asTask && tasks && era === "modern" && !serves) return "task";
  if (era === "modern") return forms || serves ? "input_required" : "handle";
  return forms ? "elicit" : "handle";
}

export interface DeliveryWishes {
  asTask: boolean;
  lends: boolean;
}

/** 2026-07-28 clients declare with every request, 2025-era clients once, in the handshake. */
export function clientFacts(mcp: McpServer, context: ServerContext, era: Era): ClientFacts {
  const envelope: Record<string, unknown> | undefined = context.mcpReq.envelope;
  const declared =
    era === "modern" ? envelope?.[CLIENT_CAPABILITIES_META_KEY] : mcp.server.getClientCapabilities();
  const forms = declaresForms(declared) && allows(context.http?.authInfo, "approve");
  return {
    era,
    forms,
    tasks: era === "modern" && declaresExtension(declared, TASKS_EXTENSION),
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

function declaresExtension(capabilities: unknown, extension: string): boolean {
  return Extensions.safeParse(capabilities).data?.extensions[extension] !== undefined;
}

const Capabilities = z.looseObject({ elicitation: z.looseObject({}).optional() });
const Sampling = z.looseObject({ sampling: z.looseObject({ tools: z.looseObject({}) }) });
const Extensions = z.looseObject({ extensions: z.record(z.string(), z.unknown()) });
