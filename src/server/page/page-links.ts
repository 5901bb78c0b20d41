import type { Principal } from "../../runs/run.ts";
import type { PageGrant } from "./link-token.ts";

/** Serves pages of runs. */
export interface PageServer {
  /** An address that opens the page once, for this run and purpose. */
  link(grant: PageGrant): string;
  close(): Promise<void>;
}

/** Gives links to the page of a run, and serves it from the first link on. */
export interface PageLinks {
  /** For a model to pass on: it opens a view that cannot decide. */
  watch(principal: Principal, runId: string): Promise<string>;
  /** For a client to open in the person's browser, never for a model: its page decides. */
  decide(principal: Principal, runId: string): Promise<string>;
  close(): Promise<void>;
}

/** Opens the page server with the first link; a failed opening is tried again by the next one. */
export function createPageLinks(open: () => Promise<PageServer>): PageLinks {
  let opened: Promise<PageServer> | undefined;
  const link = async (grant: PageGrant): Promise<string> => {
    opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return (await opened).link(grant);
  };
  return {
    watch: (principal, run) => link({ run, principal, purpose: "watch" }),
    decide: (principal, run) => link({ run, principal, purpose: "decide" }),
    close: async () => {
      const server = await opened?.catch(() => undefined);
      await server?.close();
    },
  };
}
