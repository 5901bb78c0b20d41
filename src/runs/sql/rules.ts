/** Approval rules of people, and the untrusted texts that hold them back. */
import { type ApprovalRule, type RuledRequest, reachesOut } from "../../rules/call.ts";
import { ruleOffers } from "../../rules/offers.ts";
import { allowingRules } from "../../rules/rule.ts";
import { type Approval, BY_RULE, sameAs } from "../run.ts";
import type { Decision } from "../../tools/request.ts";
import { toJson } from "../../core/json.ts";
import { type RowOf, readFields } from "./columns.ts";
import { grantFor } from "./grants.ts";
import { type Engine, type Steps, all, change, ofPrincipal, send } from "./steps.ts";

const RULE = "id, folder, rule, created_at, created_by, run_id, approval_id, uses, last_used_at";

/** Untrusted texts that a request names. */
const MOST_SOURCES = 5;

const isUnsandboxed = ({ call }: RuledRequest): number =>
  Number(call.kind === "command" && !call.isSandboxed);

/** An approval in the place of a person's, and its decider. */
interface EarlierApproval {
  answer: Decision;
  by: string;
}

/**
 * Looks for a grant for the run, or rules, that allow a call. Without them: the rules that its person may save, or the
 * untrusted texts that keep rules from allowing it.
 */
export function* approvedBefore(
  request: Approval,
  now: number,
): Steps<{ before?: EarlierApproval; ruled?: RuledRequest }> {
  const { runId, ruled, allowedDecisions } = request;
  const grant = yield* grantFor(request);
  if (grant !== undefined) return { before: { answer: { type: "approve" }, by: sameAs(grant.approvalId) } };
  if (ruled === undefined || !allowedDecisions.includes("approve")) return {};
  const { call, folder, allow = [], read = [], trusts } = ruled;
  const where = { run_id: runId, folder, is_unsandboxed: isUnsandboxed(ruled) };
  const own = yield* all<{ id: string; rule: string }>(
    `SELECT id, rule FROM approval_rules WHERE principal = (SELECT principal FROM runs WHERE id = @run_id)
       AND folder = @folder AND is_unsandboxed = @is_unsandboxed ORDER BY number`,
    where,
  );
  const known = [...allow, ...own.map(({ rule }) => rule)];
  const used = allowingRules(call, known);
  const sources = reachesOut(call) && trusts !== true ? [...read, ...(yield* untrustedTexts(runId))] : [];
  if (sources.length > 0)
    return { ruled: { ...ruled, ...(used && { heldBack: sources.slice(0, MOST_SOURCES) }) } };
  if (used === undefined) return { ruled: { ...ruled, offers: ruleOffers(call, known) } };
  const ids = own.flatMap(({ id, rule }) => (used.includes(rule) ? [id] : []));
  yield* send(
    `UPDATE approval_rules SET uses = uses + 1, last_used_at = @now WHERE id IN (SELECT value FROM json_each(@ids))`,
    { ids: toJson(ids), now },
  );
  return { before: { answer: { type: "approve", byRule: true }, by: BY_RULE + used.join(", ") } };
}

/** Stores the rules that a person chose with an answer. Those that exist already stay as they are. */
export function* saveRules(
  { runId, id, ruled }: Approval,
  rules: readonly string[],
  by: string,
  now: number,
): Steps<void> {
  if (ruled === undefined) return;
  for (const [index, rule] of rules.entries())
    yield* change(
      `INSERT INTO approval_rules
         (id, principal, folder, rule, is_unsandboxed, created_at, created_by, run_id, approval_id, uses)
       SELECT @id, principal, @folder, @rule, @is_unsandboxed, @now, @by, @run_id, @approval_id, 0 FROM runs WHERE id = @run_id
       ON CONFLICT (principal, folder, is_unsandboxed, rule) DO NOTHING`,
      {
        id: `rule_${id}_${index}`,
        folder: ruled.folder,
        rule,
        is_unsandboxed: isUnsandboxed(ruled),
        now,
        by,
        run_id: runId,
        approval_id: id,
      },
    );
}

/** Untrusted texts that the agents of a run's conversation have read. */
function* untrustedTexts(runId: string): Steps<string[]> {
  const rows = yield* all<{ source: string }>(
    `SELECT source FROM thread_sources WHERE thread_id = (SELECT thread_id FROM runs WHERE id = @run_id)
     ORDER BY source LIMIT ${MOST_SOURCES}`,
    { run_id: runId },
  );
  return rows.map(({ source }) => source);
}

/** Notes untrusted texts that agents of a run have read. `root`: the run with the conversation. */
export function* noteSources(root: string, sources: ReadonlySet<string>): Steps<void> {
  if (sources.size === 0) return;
  yield* send(
    `INSERT INTO thread_sources (thread_id, source)
     SELECT thread_id, value FROM runs CROSS JOIN json_each(@sources) WHERE runs.id = @root
     ON CONFLICT (thread_id, source) DO NOTHING`,
    { root, sources: toJson([...sources]) },
  );
}

/** Copies the notes about untrusted texts to the copy of a conversation. */
export function* copySources(from: string, to: string): Steps<void> {
  const sql = "INSERT INTO thread_sources SELECT @to, source FROM thread_sources WHERE thread_id = @from";
  yield* send(sql, { from, to });
}

export const ruleRows = (engine: Engine) => ({
  ...ofPrincipal(engine, "read", {
    /** Oldest first. */
    *list(principal: string): Steps<ApprovalRule[]> {
      const sql = "SELECT * FROM approval_rules WHERE principal = @principal ORDER BY number";
      const rows = yield* all<RowOf<ApprovalRule>>(sql, { principal });
      return rows.map((row) => ({ ...readFields(row, RULE), isUnsandboxed: row.is_unsandboxed === 1 }));
    },
  }),
  ...ofPrincipal(engine, "write", {
    /** Removes a rule at once, also for runs at work. False: there is none. */
    *remove(principal: string, id: string): Steps<boolean> {
      const sql = "DELETE FROM approval_rules WHERE principal = @principal AND id = @id";
      return (yield* change(sql, { principal, id })) > 0;
    },
  }),
});
