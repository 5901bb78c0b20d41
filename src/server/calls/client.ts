/** Derives a client's abilities and patience from its declarations. */
import type { McpServer, ServerContext } from "@modelcontextprotocol/server";
import { CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY } from "@modelcontextprotocol/server";
import { isRecord, memberOf, textMemberOf } from "../../core/unknown.ts";
import type { Config } from "../../config/schema.ts";
import { allows } from "../../runs/scopes.ts";
import { APPS_EXTENSION, TASKS_EXTENSION } from "../contracts/extensions.ts";
import { type ResultForm, knownClient, resultForm } from "./known-clients.ts";
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
  /** Its name for itself, used only for the form of its results, how long its calls wait, and the log. */
  name?: { name: string; version: string } | undefined;
  form: ResultForm;
  apps: boolean;
  /** It names the folders that it works in, when it is asked during a call. */
  roots: boolean;
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
  const name = textMemberOf(info, "name")?.slice(0, 200);
  return {
    revision,
    forms: hasForms && !page,
    page,
    urls: mayDecide && declaresUrls(declared),
    tasks: declaresExtension(declared, TASKS_EXTENSION),
    name: name === undefined ? undefined : { name, version: textMemberOf(info, "version") ?? "" },
    form: resultForm(knownClient(name)),
    apps: declaresExtension(declared, APPS_EXTENSION),
    roots: revision.sessions && isRecord(memberOf(declared, "roots")),
    // An agent cannot work without tools.
    models:
      isRecord(memberOf(memberOf(declared, "sampling"), "tools")) && allows(context.http?.authInfo, "run"),
  };
}

/** True if the client shows forms. An empty `elicitation` means that it does, as in early revisions. */
export function declaresForms(capabilities: unknown): boolean {
  const elicitation = memberOf(capabilities, "elicitation");
  return isRecord(elicitation) && ("form" in elicitation || Object.keys(elicitation).length === 0);
}

export const declaresUrls = (capabilities: unknown): boolean =>
  memberOf(memberOf(capabilities, "elicitation"), "url") !== undefined;

const declaresExtension = (capabilities: unknown, extension: string): boolean =>
  memberOf(memberOf(capabilities, "extensions"), extension) !== undefined;

/**
 * Returns how long a call of this client waits for its run. `tellsProgress`: it carries a progress token.
 * `pausesForForms`: the time while a form of the call is open does not count.
 */
export function windowFor(client: ClientFacts["name"], tellsProgress: boolean, delivery: Config["delivery"]) {
  const { name, version = "" } = client ?? {};
  const known = knownClient(name)?.waits;
  // The entry that names most of the version.
  const [configured] = Object.entries(delivery.clients)
    .filter(([key]) => key === name || `${name}/${version}.`.startsWith(`${key}.`))
    .sort(([one], [other]) => other.length - one.length)
    .map(([, entry]) => entry);
  const isExtended = tellsProgress && known?.extendsOnProgress === true;
  return {
    seconds: configured?.window ?? (isExtended ? delivery.windowWithProgress : delivery.window),
    pausesForForms: configured?.pausesForForms ?? known?.pausesForForms ?? false,
  };
}
