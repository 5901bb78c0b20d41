/** Assembles the dependencies of the MCP server. Agent and storage are loaded on the first use of runs. */
import { join } from "node:path";
import { PROGRAM } from "../config/program.ts";
import type { Config } from "../config/schema.ts";
import { monotonicClock, systemClock } from "../core/clock.ts";
import { defined } from "../core/unknown.ts";
import type { Logger } from "../core/logger.ts";
import { linkGuard } from "../core/real-path.ts";
import { keptAtLeastMs } from "../runs/retention.ts";
import type { Run } from "../runs/run.ts";
import type { Holds } from "../runs/shares.ts";
import type { StreamStore } from "../runs/server-ports.ts";
import { principalOf } from "../server/auth/auth.ts";
import type { ServerDeps } from "../server/contracts/deps.ts";
import { createPageLinks, lazyRuns, loginPageLinks, pagesAt } from "../server/contracts/deps.ts";
import { loadPreviousStateKey, loadStateKey } from "../server/calls/state.ts";
import { createResourceChanges } from "../server/resources/changes.ts";
import type { SharedStorage } from "../storage/storage.ts";
import { retentionOf } from "./lifecycle.ts";

export interface ServerSettings {
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  version: string;
  logger: Logger;
  /** A line that opens the page of this run in a shell of this machine. Default: one without paths. */
  openCommand?: (runId: string) => string;
  /** True if this process works on runs. Default true. */
  works?: boolean;
  /**
   * The page that results link to: on this machine, served by this process, or over HTTP, at a public address or the
   * host of a request. Default: none.
   */
  page?: "local" | "request" | URL | undefined;
  holds?: Holds | undefined;
}

export type ServerParts = ReturnType<typeof serverParts>;

export function serverParts(settings: ServerSettings) {
  const { config, env, version, logger, works = true, page, holds } = settings;
  const command = settings.openCommand ?? ((runId) => `${PROGRAM} runs open ${runId}`);
  // A terminal shows only the runs of people who need no token.
  const openCommand = ({ id, principal }: Run): string | undefined =>
    principal === principalOf(undefined) ? command(id) : undefined;
  const storage = sharedStorage(settings);
  const lazy = lazyRuns(async () => {
    const { openFolderRuns } = await import("./folders.ts");
    const parts = { lendable: true, startsSchedules: true, ...defined({ storage, pageOf, holds }) };
    return openFolderRuns({ config, env, logger, works, ...parts });
  });
  const runs = () => lazy.runs();
  const changes = createResourceChanges({ runs, logger });
  const keys = stateKeys(config, storage);
  const sharing = config.shareLinks ? { sharedRuns: runs } : {};
  const pageOf = page instanceof URL ? pagesAt(page) : undefined;
  const links = createPageLinks(async () => {
    const { openPage } = await import("./open-page.ts");
    const key = await keys.stateKey();
    const local = principalOf(undefined);
    return openPage({ config, runs, ...sharing, key, local, openCommand, logger });
  }, logger);
  const kept = keptAtLeastMs(retentionOf(config));
  const deps: ServerDeps = {
    version,
    config,
    logger,
    clock: systemClock,
    monotonic: monotonicClock,
    runs,
    ...sharing,
    ...(config.eventWebhooks ? { callbacks: "public" as const } : {}),
    // Claude Code and its like name their project to the servers that they start.
    ...defined({ pageOf, projectFolder: settings.openCommand && env["CLAUDE_PROJECT_DIR"] }),
    ...keys,
    principalOf,
    openCommand,
    changes,
    commands: async (principal) => {
      const { readPersonCommands } = await import("./person-commands.ts");
      return readPersonCommands(config, { principal }, logger);
    },
    ...(kept === null ? {} : { keptAtLeastMs: kept }),
    ...(page && { page: page === "local" ? links : loginPageLinks(page === "request" ? undefined : page) }),
  };
  return {
    deps,
    /** The runs of all principals, for whoever operates the server. */
    operator: runs,
    /** Opens the state shared by several servers of one group of clients. Absent: there are no other servers. */
    ...(storage === undefined ? {} : { openShared: storage }),
    /** Opens the message store of 2025-era sessions. */
    openStreams: async (): Promise<StreamStore> => {
      if (storage !== undefined) return (await storage()).openStreams();
      const { openStreams } = await import("../storage/sqlite/streams.ts");
      return openStreams(join(config.dataDir, "streams.db"));
    },
    /** Parks the runs at work and releases all resources. */
    close: async () => {
      await links.close();
      await changes.close();
      await lazy.close();
    },
  };
}

/**
 * Opens the storage shared with other servers, once, and again after it failed or was closed. `undefined`: this server
 * has files of its own.
 */
function sharedStorage(settings: ServerSettings): (() => Promise<SharedStorage>) | undefined {
  const { storage: url } = settings.config;
  if (url === undefined) return undefined;
  let opened: Promise<SharedStorage> | undefined;
  const open = async (): Promise<SharedStorage> => {
    const { openSharedStorage } = await import("./open-storage.ts");
    const storage = await openSharedStorage(url, settings);
    const close = async (): Promise<void> => {
      opened = undefined;
      await storage.close();
    };
    return { ...storage, close };
  };
  return () =>
    (opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    }));
}

/** The key that signs `requestState`: a file of the data directory, or a secret of all servers. */
function stateKeys(
  { dataDir }: Config,
  storage: (() => Promise<SharedStorage>) | undefined,
): Pick<ServerDeps, "stateKey" | "previousStateKey"> {
  if (storage !== undefined) return { stateKey: async () => (await storage()).secret("state") };
  // The key is read for every state. A link that changes in between must not lead to another key.
  const assertLinks = linkGuard(dataDir, "the data directory");
  const guarded =
    <Key>(load: (folder: string) => Promise<Key>) =>
    async (): Promise<Key> => {
      assertLinks();
      return load(dataDir);
    };
  return { stateKey: guarded(loadStateKey), previousStateKey: guarded(loadPreviousStateKey) };
}
