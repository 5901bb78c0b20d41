import type { RuledRequest } from "../../rules/call.ts";
import type { BoundPreview } from "../../tools/tool.ts";

/** The rules of an operator and of people about the calls of an agent and its subagents. */
export interface CallRules {
  /** `deny`: why the call may not run. `ask`: a person is asked about it, whatever they allowed before. */
  judge(name: string, args: Record<string, unknown>): { deny?: string; ask?: true };
  /** Describes the call for rules that allow calls. Returns undefined if none of them may allow it. */
  describe(name: string, args: Record<string, unknown>, preview: BoundPreview): RuledRequest | undefined;
  /** Names where the result of a call comes from, if it is a text that neither the person nor the agent wrote. */
  untrustedSource(name: string, args: Record<string, unknown>): string | undefined;
}
