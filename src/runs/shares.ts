/** Links with which others look at one run, until they expire or are taken back. */
import { randomBytes } from "node:crypto";
import { type Principal, noRun } from "./run.ts";

export interface RunShare {
  id: string;
  createdAt: number;
  expiresAt: number;
  /** Times that somebody followed the link. */
  opened: number;
}

/** A share with what it shows. */
export interface SharedRun extends RunShare {
  principal: Principal;
  runId: string;
}

/** Longest lifetime of a link. */
const MAX_SHARE_MS = 7 * 86_400_000;
/** Most links to one run at a time. */
export const MAX_SHARES = 20;

export type ShareOutcome =
  | { ok: true; share: SharedRun }
  | { ok: false; code: "not_found" | "too_many"; message: string };

/** Storage of shares. An expired one looks like one that does not exist. */
export interface ShareRows {
  /** False: there are `MAX_SHARES` already. `undefined`: no such run. */
  add(share: SharedRun): Promise<boolean | undefined>;
  /** Oldest first; none for an unknown run. */
  of(principal: Principal, runId: string, now: number): Promise<RunShare[]>;
  /** Ends a link at once. False: there is none. */
  remove(principal: Principal, runId: string, id: string): Promise<boolean>;
  find(id: string, now: number): Promise<SharedRun | undefined>;
  /** Counts that somebody followed the link. */
  countOpening(share: SharedRun): Promise<void>;
}

/** Shares as their owners make them, and sign-ins find them. */
export interface RunSharer {
  /** Makes a link that ends after so many milliseconds. */
  share(principal: Principal, runId: string, milliseconds: number): Promise<ShareOutcome>;
  /** Links that work, oldest first; none for an unknown run. */
  shares(principal: Principal, runId: string): Promise<RunShare[]>;
  /** Ends a link at once. False: there is none. */
  unshare(principal: Principal, runId: string, shareId: string): Promise<boolean>;
}

interface NewShare {
  principal: Principal;
  runId: string;
  milliseconds: number;
  now: number;
}

export async function share(
  rows: ShareRows,
  { principal, runId, milliseconds, now }: NewShare,
): Promise<ShareOutcome> {
  const expiresAt = now + Math.min(milliseconds, MAX_SHARE_MS);
  // Whoever has the id and no signature of it opens nothing; all the same it cannot be guessed.
  const id = randomBytes(16).toString("base64url");
  const made = { id, runId, principal, createdAt: now, expiresAt, opened: 0 };
  const isAdded = await rows.add(made);
  if (isAdded === undefined) return noRun(runId);
  return isAdded ? { ok: true, share: made } : { ok: false, code: "too_many", message: TOO_MANY };
}

const TOO_MANY = `This run has ${MAX_SHARES} links that work, which is the maximum. Stop one of them first.`;

/** Links as sign-ins find them; they are of no principal. */
export interface SharedRuns {
  sharedRun(shareId: string): Promise<SharedRun | undefined>;
  /** Counts that somebody followed the link. */
  shareOpened(share: SharedRun): Promise<void>;
}
