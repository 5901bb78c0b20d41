/** Links with which others look at one run, until they expire or are taken back. */
import { randomBytes } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import { type OrRefused, type Principal, noRun } from "./run.ts";

/** The token that something is made with, which ends with it. */
export interface MadeWith {
  /** Identifies the token in storage. */
  credential: string;
  /** When the token expires, in milliseconds since the epoch. */
  until: number;
}

/** True if the token that something of a principal was made with is still accepted. */
export type Holds = (made: Pick<Access, "principal" | "credential">) => Promise<boolean>;

/** A link to a run, a subscription to events, or a client or browser for which a person logged in. */
export interface Access {
  kind: "link" | "subscription" | "client";
  id: string;
  principal: Principal;
  /** Absent: all runs of the principal. */
  runId?: string;
  /** The text that stands for the run, or the name of the client. */
  name?: string;
  /** Absent in rows of an older version. */
  createdAt?: number;
  expiresAt: number;
  /** Times that somebody followed the link. */
  opened?: number;
  /** The events of a subscription, and the address that they are sent to; the scopes of a client, and its place. */
  type?: string;
  url?: string;
  /** Identifies the token that made it; absent if none did. */
  credential?: string;
  /** Last time that a client renewed its access. */
  usedAt?: number;
}

export interface SharedRun extends Pick<Access, "id" | "principal" | "expiresAt" | "credential"> {
  runId: string;
  createdAt: number;
  opened: number;
}

/** Most links to one run at a time. */
export const MAX_SHARES = 20;

export type ShareOutcome = OrRefused<{ share: SharedRun }, "not_found" | "too_many">;

export async function share(
  principal: Principal,
  runId: string,
  milliseconds: number,
  madeWith: MadeWith | undefined,
  { add, clock }: { add: (share: SharedRun, most: number) => Promise<boolean | undefined>; clock: Clock },
): Promise<ShareOutcome> {
  const now = clock();
  const { until = Infinity, ...by }: Partial<MadeWith> = madeWith ?? {};
  // A link lives for a week at most.
  const expiresAt = Math.min(now + Math.min(milliseconds, 7 * 86_400_000), until);
  // Whoever has the id and no signature of it opens nothing; all the same it cannot be guessed.
  const id = randomBytes(16).toString("base64url");
  const made = { id, runId, principal, createdAt: now, expiresAt, opened: 0, ...by };
  const isAdded = await add(made, MAX_SHARES);
  if (isAdded === undefined) return noRun(runId);
  if (isAdded) return { ok: true, share: made };
  const message = `This run has ${MAX_SHARES} links that work, which is the maximum. Stop one of them first.`;
  return { ok: false, code: "too_many", message };
}

/** Links as sign-ins find them; they are of no principal. */
export interface SharedRuns {
  sharedRun(shareId: string): Promise<SharedRun | undefined>;
  /** Counts that somebody followed the link. */
  shareOpened(share: SharedRun): Promise<void>;
}
