import type { Approval } from "./run.ts";
import { toApproval } from "./stores/rows.ts";
import type { ApprovalStore } from "./stores/approval-store.ts";

interface Settled {
  /** Number of the newest row that is in `approvals`; none before it is pending. */
  upTo: number;
  approvals: Approval[];
}

/**
 * The approvals of runs as views show them. A decision is never taken back, so that each is read once: a look
 * at a run costs the same after a thousand. Not for use within a transaction, which may be.
 */
export class ApprovalViews {
  readonly #store: ApprovalStore;
  readonly #capacity: number;
  readonly #settled = new Map<string, Settled>();

  constructor(store: ApprovalStore, capacity = 256) {
    this.#store = store;
    this.#capacity = capacity;
  }

  /** Oldest first. */
  of(runId: string): Approval[] {
    const settled = this.#settled.get(runId) ?? { upTo: 0, approvals: [] };
    this.#settled.delete(runId);
    this.#settled.set(runId, settled);
    const oldest = this.#settled.keys().next();
    if (this.#settled.size > this.#capacity && oldest.done !== true) this.#settled.delete(oldest.value);
    const rows = this.#store.after(runId, settled.upTo);
    const firstPending = rows.findIndex(({ status }) => status === "pending");
    const decided = firstPending === -1 ? rows : rows.slice(0, firstPending);
    settled.approvals.push(...decided.map(toApproval));
    settled.upTo = decided.at(-1)?.number ?? settled.upTo;
    return [...settled.approvals, ...rows.slice(decided.length).map(toApproval)];
  }
}
