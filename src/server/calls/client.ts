/** Derives a client's abilities and patience from its declarations. */
import type { McpServer, ServerContext } from "@modelcontextprotocol/server";
import { CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Config } from "../../config/schema.ts";
import { allows } from "../../runs/scopes.ts";
import { APPS_EXTENSION, TASKS_EXTENSION } from "../contracts/extensions.ts";
import type { ServerDeps } from "../contracts/deps.ts";
import type { Revision } from "../contracts/revisions.ts";

export interface ClientFacts {
  revision: Revision;
  /** It is asked in forms: it shows them, and its token may decide and answer. */
  forms: boolean;
  /** It is asked on the local page: it opens addresses, there is a page, and its token may decide. */
  page: boolean;
  /** It opens addresses that another MCP server asks to open. */
  urls: boolean;
  tasks: boolean;
  name?: ClientName | undefined;
  apps: boolean;
  /** It lends its model: samples messages with tools, and its token may work on runs. */
  models: boolean;
}

/** Reads a client's declarations, in the handshake or with this request. */
export function clientFacts(
  mcp: McpServer,
  context: ServerContext,
  { revision, deps }: { revision: Revision; deps: Pick<ServerDeps, "config" | "page"> },
): ClientFacts {
  const envelope: Record<string, unknown> | undefined = context.mcpReq.envelope;
  const declared = revision.sessions
    ? mcp.server.getClientCapabilities()
    : envelope?.[CLIENT_CAPABILITIES_META_KEY];
  const info = revision.sessions ? mcp.server.getClientVersion() : envelope?.[CLIENT_INFO_META_KEY];
  const mayDecide = allows(context.http?.authInfo, "approve");
  // The page shows the journal too.
  const mayLook = allows(context.http?.authInfo, "read");
  const canOpen = mayDecide && mayLook && deps.page !== undefined && declaresUrls(declared);
  const hasForms = mayDecide && declaresForms(declared);
  const page = canOpen && (!hasForms || deps.config.delivery.ask === "page");
  return {
    revision,
    forms: hasForms && !page,
    page,
    urls: mayDecide && declaresUrls(declared),
    tasks: declaresExtension(declared, TASKS_EXTENSION),
    name: Info.safeParse(info).data,
    apps: declaresExtension(declared, APPS_EXTENSION),
    models: Sampling.safeParse(declared).success && allows(context.http?.authInfo, "run"),
  };
}

/** True if the client shows forms. An empty `elicitation` means that it does, as in early revisions. */
export function declaresForms(capabilities: unknown): boolean {
  const elicitation = Capabilities.safeParse(capabilities).data?.elicitation;
  if (elicitation === undefined) return false;
  return elicitation["form"] !== undefined || Object.keys(elicitation).length === 0;
}

export const declaresUrls = (capabilities: unknown): boolean =>
  Capabilities.safeParse(capabilities).data?.elicitation?.["url"] !== undefined;

const declaresExtension = (capabilities: unknown, extension: string): boolean =>
  Extensions.safeParse(capabilities).data?.extensions[extension] !== undefined;

const Capabilities = z.looseObject({ elicitation: z.looseObject({}).optional() });
/** Lends the model with tools, which an agent cannot work without. */
const Sampling = z.looseObject({ sampling: z.looseObject({ tools: z.looseObject({}) }) });
const Info = z.object({ name: z.string().max(200), version: z.string().max(200).catch("") });
const Extensions = z.looseObject({ extensions: z.record(z.string(), z.unknown()) });

/** A client's name for itself, used only to choose how long its calls wait. */
type ClientName = z.output<typeof Info>;

/**
 * Clients that wait longer than the 60 seconds after which most end a call, progress or not. Keys are client names,
 * or `name/version` for versions with this prefix. A client counts again with every progress notification, or stops
 * counting while a form of the call is open; or it has no limit.
 */
export const KNOWN_LIMITS: Readonly<Record<string, { extendsOnProgress?: true; pausesForForms?: true }>> = {
  // Its documentation of MCP: a call may idle for 5 minutes over HTTP and 30 over stdio, and progress resets that.
  "claude-code": { extendsOnProgress: true },
  // Tried with 0.169: `tool_timeout_sec` (60) ends calls in spite of progress, but pauses while a form is open; a
  // form answered after 80 seconds was accepted.
  "codex-mcp-client": { pausesForForms: true },
  // Its documentation of MCP names no limit, and it waits until the person cancels.
  "Visual Studio Code": { extendsOnProgress: true, pausesForForms: true },
  "Visual Studio Code - Insiders": { extendsOnProgress: true, pausesForForms: true },
};

/**
 * Returns how long a call of this client waits for its run. `tellsProgress`: it carries a progress token.
 * `pausesForForms`: the time while a form of the call is open does not count.
 */
export function windowFor(
  client: ClientName | undefined,
  tellsProgress: boolean,
  delivery: Config["delivery"],
): { seconds: number; pausesForForms: boolean } {
  const known = bestMatch(client, KNOWN_LIMITS);
  const configured = bestMatch(client, delivery.clients);
  const isExtended = tellsProgress && known?.extendsOnProgress === true;
  return {
    seconds: configured?.window ?? (isExtended ? delivery.windowWithProgress : delivery.window),
    pausesForForms: configured?.pausesForForms ?? known?.pausesForForms ?? false,
  };
}

/** Returns the entry that names most of the version. */
function bestMatch<Entry>(client: ClientName | undefined, entries: Readonly<Record<string, Entry>>) {
  if (client === undefined) return undefined;
  const { name, version } = client;
  const fitting = Object.keys(entries).filter((key) => {
    const wanted = key.slice(name.length + 1);
    const isVersion = version === wanted || version.startsWith(`${wanted}.`);
    return key === name || (key.startsWith(`${name}/`) && isVersion);
  });
  const best = fitting.sort((a, b) => b.length - a.length)[0];
  return best === undefined ? undefined : entries[best];
}
