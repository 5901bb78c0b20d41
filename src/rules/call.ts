/** Calls as approval rules see them. */
import type { ShellDialect } from "./shell/read.ts";

/** The facts about a call that a rule is compared with. */
export type RuledCall =
  /** `isSandboxed`: it reaches no files but those of its sandbox. */
  | { kind: "command"; command: string; shell: ShellDialect; isSandboxed: boolean; hasNetwork: boolean }
  /** Paths from the root of the workspace, such as `docs/a.md`: as written, and with links followed. */
  | { kind: "edit"; paths: readonly string[] }
  /** The host, with a port that is not the usual one. */
  | { kind: "page"; host: string }
  /** A tool of another MCP server: `server__tool`. */
  | { kind: "server_tool"; name: string };

/** A call that rules of people may allow. */
export interface RuledRequest {
  call: RuledCall;
  /** The folder that the rules belong to. */
  folder: string;
  /** Allow rules of the operator. */
  allow?: readonly string[];
  /** Untrusted texts that the agent has had from the beginning. */
  read?: readonly string[];
  /** The operator lets rules allow calls after untrusted texts. */
  trusts?: true;
  /** Rules that the person can save with the approval. */
  offers?: readonly RuleOffer[];
  /** Rules would allow the call, but the conversation has these untrusted texts. */
  heldBack?: readonly string[];
}

/** Rules that a person can save while approving a call. */
export interface RuleOffer {
  /** At most five, which together cover the call. */
  rules: string[];
  /** Describes the allowed calls for the person. */
  sentence: string;
  /** Three calls that they allow, or fewer if there are no others. */
  examples: string[];
}

/** A stored rule of a person. */
export interface ApprovalRule {
  id: string;
  folder: string;
  /** Such as `Bash(npm run test *)`. */
  rule: string;
  /** It covers commands outside a sandbox, and none inside. */
  isUnsandboxed: boolean;
  createdAt: number;
  /** The surface that it was created on, and the approval. */
  createdBy: string;
  runId: string;
  approvalId: string;
  /** Number of calls that it has allowed. */
  uses: number;
  lastUsedAt?: number;
}

/** True for a call that sends something out, or changes something outside the workspace. */
export const reachesOut = (call: RuledCall): boolean =>
  call.kind === "command" ? !call.isSandboxed || call.hasNetwork : call.kind !== "edit";

/** The rules of an operator and of people about the calls of an agent and its subagents. */
export interface CallRules {
  /** `deny`: why the call may not run. `ask`: a person is asked about it, whatever they allowed before. */
  judge(name: string, args: Record<string, unknown>): { deny?: string; ask?: true };
  /**
   * Describes the call for rules that allow calls. Returns undefined if none of them may allow it. `place`: the path that
   * it touches, links followed.
   */
  describe(
    name: string,
    args: Record<string, unknown>,
    preview: { place?: string | undefined },
  ): RuledRequest | undefined;
  /** Names the source of a call's result, if neither the person nor the agent wrote it. */
  untrustedSource(name: string, args: Record<string, unknown>): string | undefined;
}
