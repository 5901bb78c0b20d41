/** Dependencies of the server; runs and pages are opened when they are first used. */
import type { AuthInfo, ServerContext } from "@modelcontextprotocol/server";
import type { Config } from "../../config/schema.ts";
import type { Clock } from "../../core/clock.ts";
import { memoized } from "../../core/concurrency.ts";
import { DeepAgentError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { Callbacks } from "../../news/subscriber.ts";
import type { Principal, Run } from "../../runs/run.ts";
import type { PrincipalRuns, RunService, RunsByHolder } from "../../runs/service.ts";
import type { SharedRuns } from "../../runs/shares.ts";
import { type PageLink, runPath } from "./viewer.ts";
import type { ResourceChanges } from "./changes.ts";

/** A command that a person starts, from a file of the workspace or of their home folder. */
export interface OfferedCommand {
  name: string;
  description: string;
  /** Arguments with names; if there are none, it takes one text. */
  inputs: readonly string[];
  hint?: string;
  /** Makes the task. */
  fill(given: string | Readonly<Record<string, string>>): string;
}

type ModelSetting = "model" | "fallbackModels" | "allowedModels";

/** Dependencies that all connections of a process share. `Runs`: the form in which they reach runs. */
export interface ServerDeps<Runs = RunsByHolder> {
  version: string;
  config: Pick<Config, "approvals" | "delivery" | "subagents" | "codexTools" | "workspace" | ModelSetting> &
    Partial<Pick<Config, "folders" | "principalFolders">>;
  /** Folder of the client that started this process. Absent: not known. */
  projectFolder?: string;
  logger: Logger;
  clock: Clock;
  /** Clock for durations; it does not jump when the system's clock is set. */
  monotonic: Clock;
  /** Loads agent and storage on the first call. Never awaited before the handshake is answered. */
  runs: () => Promise<Runs>;
  /** Finds runs by links to them. Absent: the configuration wants no such links. */
  sharedRuns?: () => Promise<SharedRuns>;
  /** Secret of at least 32 bytes that signs `requestState`; asked for when a state is first made or checked. */
  stateKey: () => Promise<Uint8Array>;
  /** The secret that was used before, if there is one; its signatures are still accepted. */
  previousStateKey?: () => Promise<Uint8Array | undefined>;
  /**
   * Returns the principal of a request from its verified token (on stdio there is none), never from the
   * client's own words.
   */
  principalOf: (auth: AuthInfo | undefined) => Principal;
  /**
   * Command that opens the page of a run from a terminal, or other instructions; `undefined` if a terminal does
   * not show the page. Over HTTP it does not contain paths of this machine.
   */
  openCommand: (run: Run) => string | undefined;
  changes: ResourceChanges;
  /** Reads the commands that this principal may start. Default: there are none. */
  commands?: (principal: Principal) => Promise<readonly OfferedCommand[]>;
  /**
   * Sends events to webhook URLs that HTTP clients registered; `public`: only on the public internet. Absent: not
   * configured.
   */
  callbacks?: Callbacks | "public";
  /** The page of a run, at an address without secrets. Default: there is none. */
  pageOf?: (runId: string) => string;
  /** Minimum time that a run is kept after its start, in ms. Absent: runs are not deleted. */
  keptAtLeastMs?: number;
  /** Absent: the configuration wants no page, or has no address for it. */
  page?: PageLinks;
}

/** Dependencies of one connection, which reaches runs only as its holder. */
export type ConnectionDeps = ServerDeps<PrincipalRuns>;

/** Opens something once. The next call retries a failed opening; one that was never opened need not be closed. */
function openedOnce<Opened extends { close(): Promise<void> }>(open: () => Promise<Opened>) {
  let opened: Promise<Opened> | undefined;
  return {
    get: memoized(() => (opened = open())),
    close: async (): Promise<void> => (await opened?.catch(() => undefined))?.close(),
  };
}

/** Opens the service when it is first used. Closing it parks running work; once closed, it stays closed. */
export function lazyRuns<Service extends RunService>(open: () => Promise<Service>) {
  const service = openedOnce(open);
  let closed = false;
  return {
    runs: async (): Promise<Service> => {
      if (closed) throw new DeepAgentError("shutting_down", "The server is shutting down. Connect again.");
      return service.get();
    },
    close: (): Promise<void> => {
      closed = true;
      return service.close();
    },
  };
}

export interface PageServer {
  address: string;
  /** An address that opens the page once. */
  link(link: PageLink): string;
  close(): Promise<void>;
}

/** Returns links to the page of a run, and serves it from the first link on. Links are undefined if it cannot be served. */
export interface PageLinks {
  /** True if people log in to the page, so that a link may lead a person to decide although a model knows it. */
  asksForLogIn: boolean;
  /** Makes a link for a model to pass on, which by itself decides nothing. `origin`: the address of the request. */
  watch(principal: Principal, runId: string, origin?: string): Promise<string | undefined>;
  /** Makes a link for a client to open in the person's browser, never for a model: its page decides. */
  decide(principal: Principal, runId: string, origin?: string): Promise<string | undefined>;
  /** Serves the page now, and returns its address. */
  address(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Pages of runs at the address of a server where people log in. */
export const pagesAt = (publicUrl: URL) => {
  const own = publicUrl.href.replace(/(?<!\/)\/+$/, "");
  return (runId: string): string => own + runPath(runId);
};

/**
 * Links to a page where people log in: the addresses open nothing by themselves, so anybody may know them. Without
 * `publicUrl` the page is at the address of the request, whose host has been checked.
 */
export function loginPageLinks(publicUrl: URL | undefined): PageLinks {
  const own = publicUrl && pagesAt(publicUrl);
  const link: PageLinks["watch"] = async (_principal, runId, origin) =>
    own?.(runId) ?? (origin === undefined ? undefined : origin + runPath(runId));
  return {
    asksForLogIn: true,
    watch: link,
    decide: link,
    address: async () => publicUrl?.href,
    close: async () => undefined,
  };
}

/** The address at which a client reaches this server over HTTP. Behind a proxy with TLS, `publicUrl` names it. */
export function originOf({ http }: ServerContext): string | undefined {
  const host = http?.req?.headers.get("host");
  return host ? `http://${host}` : undefined;
}

/** Opens the page server with the first link; a failed opening is tried again by the next one. */
export function createPageLinks(open: () => Promise<PageServer>, logger: Logger): PageLinks {
  const page = openedOnce(open);
  const use = async (of: (server: PageServer) => string): Promise<string | undefined> => {
    try {
      return of(await page.get());
    } catch (error) {
      logger.warn("page.not_opened", { error });
      return undefined;
    }
  };
  return {
    asksForLogIn: false,
    watch: (principal, run) => use((server) => server.link({ run, principal, purpose: "watch" })),
    decide: (principal, run) => use((server) => server.link({ run, principal, purpose: "decide" })),
    address: () => use((server) => server.address),
    close: page.close,
  };
}
