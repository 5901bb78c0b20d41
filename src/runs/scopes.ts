/** Scopes that each method on runs needs, and the handle that enforces them for one holder. */
import { DeepAgentError } from "../core/errors.ts";
import type { RunContext } from "./context.ts";
import type { GivenAnswer, SignedAnswer } from "./ports.ts";
import type { Holder, Principal, Scope } from "./run.ts";
import type { PrincipalRuns, RunsByHolder } from "./service.ts";

/** Implements a group for every principal. */
type ForEachPrincipal<Group> = {
  [Name in keyof Group]: Group[Name] extends (...args: infer Args) => infer Result
    ? (principal: Principal, ...args: Args) => Result
    : never;
};

export type RunGroups = { [Group in keyof PrincipalRuns]: ForEachPrincipal<PrincipalRuns[Group]> };

/** Implements a method of a group: with the context of the service before its arguments. */
export type Implements<
  Group extends keyof RunGroups,
  Name extends keyof RunGroups[Group],
  Context = RunContext,
> = RunGroups[Group][Name] extends (...args: infer Args) => infer Result
  ? (context: Context, ...args: Args) => Result
  : never;

/** Scopes of which a holder needs one, or, by the arguments of the call, several such lists. */
type Demand = readonly Scope[] | ((...args: never) => readonly (readonly Scope[])[]);

const RUN = ["run"] as const;
const APPROVE = ["approve"] as const;
const READ = ["read"] as const;
const ANY = ["run", "approve", "read"] as const;

/**
 * Any scope may look at a run that it names, because starting and deciding show it as well. Listing runs, files and
 * memories need `read`. A method that is missing here is a type error.
 */
export const DEMANDS: {
  readonly [Group in keyof PrincipalRuns]: Readonly<Record<keyof PrincipalRuns[Group], Demand>>;
} = {
  read: {
    view: ANY,
    list: READ,
    summaries: READ,
    counts: READ,
    pending: READ,
    countPending: READ,
    children: READ,
    modelCalls: RUN,
    events: READ,
    recentEvents: READ,
    points: READ,
    callTexts: READ,
  },
  watch: { events: ANY, live: ANY, starts: READ },
  control: { start: RUN, answered: ANY, tell: RUN, replyToModel: RUN, cancel: RUN, rename: RUN, delete: RUN },
  requests: {
    answer: APPROVE,
    problemOf: APPROVE,
    useAnswer: (_runId: string, { replies, answers }: SignedAnswer<GivenAnswer>) => [
      ANY,
      ...(replies.length > 0 ? [RUN] : []),
      ...(answers.length > 0 ? [APPROVE] : []),
    ],
  },
  changes: { proposed: READ, hasCopy: READ, review: APPROVE, discard: RUN },
  schedules: { list: RUN, add: RUN, edit: RUN, pause: RUN, resume: RUN, remove: RUN, runNow: RUN },
  rules: { list: READ, remove: APPROVE },
  access: { share: RUN, list: READ, revoke: RUN },
  news: { occurrences: READ, subscription: READ, subscribe: READ, unsubscribe: ANY },
  files: { ofRun: READ, mounts: READ, searchMemories: READ },
  agents: { readiness: RUN, drawing: READ, otherServers: READ },
};

/** True if the holder has one of the scopes. A holder without a list of scopes may do everything. */
export const allows = (holder: Pick<Holder, "scopes"> | undefined, ...oneOf: readonly Scope[]): boolean =>
  holder?.scopes === undefined || oneOf.some((scope) => holder.scopes?.includes(scope));

/** @throws DeepAgentError `insufficient_scope` unless the holder has one of the scopes */
export function demandScope(holder: Pick<Holder, "scopes">, oneOf: readonly Scope[]): void {
  if (allows(holder, ...oneOf)) return;
  const message = `The token of this connection does not have the scope ${oneOf.join(" or ")}. Use a token that has it.`;
  throw new DeepAgentError("insufficient_scope", message);
}

/**
 * Returns a function that binds holders to the groups. Each method of a handle checks the scopes of its holder first.
 * A refusal rejects the promise of the method; methods of `watch` return no promise and throw.
 */
export function bindRuns(groups: RunGroups): RunsByHolder["as"] {
  type Method<Result> = (...args: unknown[]) => Result;
  // The types of groups, demands and handles are derived from PrincipalRuns, so they have the same methods.
  const all = groups as unknown as Record<string, Record<string, Method<unknown>>>;
  const demands = Object.entries(DEMANDS).map(
    ([group, rows]) => [group, Object.entries<Demand>(rows)] as const,
  );
  const bound = (holder: Holder, group: string, [name, demand]: [string, Demand]): Method<unknown> => {
    const call: Method<unknown> = (...args) => {
      const needed =
        typeof demand === "function" ? (demand as Method<(readonly Scope[])[]>)(...args) : [demand];
      for (const oneOf of needed) demandScope(holder, oneOf);
      return all[group]?.[name]?.(holder.principal, ...args);
    };
    return group === "watch" ? call : async (...args) => call(...args);
  };
  return (holder) => {
    const handle = demands.map(([group, rows]) => {
      const members = rows.map((row) => [row[0], bound(holder, group, row)]);
      return [group, Object.fromEntries(members)];
    });
    return Object.fromEntries(handle) as PrincipalRuns;
  };
}
