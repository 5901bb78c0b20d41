/** Findings of scripted judges. */
import type { ScriptedReply, ScriptedRequest } from "./scripted-model.ts";

export interface Finding {
  verdict: string;
  evidence: string;
  missing?: string;
}

/** True if a judge makes this request. */
export const isJudge = ({ tools }: Pick<ScriptedRequest, "tools">): boolean => tools.includes("findings");

/** The reply of a judge with these findings, the first about the first criterion. */
export const findings = (...given: Finding[]): ScriptedReply => ({
  toolCalls: [
    {
      name: "findings",
      args: Object.fromEntries(
        given.map((finding, index) => [`criterion_${index + 1}`, { missing: "", ...finding }]),
      ),
    },
  ],
});

export const met: Finding = { verdict: "met", evidence: "/report.md:1 has it" };
export const notMet = (evidence: string): Finding => ({ verdict: "not_met", evidence, missing: "write it" });
export const unsettled = (verdict: "impossible" | "uncertain"): Finding => ({
  verdict,
  evidence: "no file tells",
  missing: "ask them",
});
