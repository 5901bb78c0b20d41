/** The schema of a judge's findings, with one field for each criterion, and their meaning. */
import { z } from "zod";
import { VERDICTS } from "../../core/criteria.ts";
import { oneLine } from "../../core/text.ts";
import { recordOf } from "../../core/unknown.ts";
import type { CriterionVerdict } from "../contracts/goal.ts";
import type { JsonSchemaFormat } from "./structured-answer.ts";

const FINDING = z.object({
  evidence: z.string().describe("Facts you saw, with path:line or a quote. One or two sentences."),
  verdict: z.enum(VERDICTS),
  missing: z.string().describe("Work that is left to do. Empty if the criterion is met."),
});

/** Name of the tool by which a judge answers. */
export const FINDINGS = "findings";

/** Longest evidence, and longest text about missing work, in characters. */
const LONGEST = 600;

/** The name of a criterion in the material and in the findings. */
export const criterionName = (index: number): string => `criterion_${index + 1}`;

/** A schema that only findings about these criteria match: none left out, none twice, no other. */
export function findingsFormat(criteria: readonly string[]): JsonSchemaFormat {
  const names = criteria.map((_, index) => criterionName(index));
  const { $schema: _draft, ...finding } = z.toJSONSchema(FINDING);
  return {
    title: FINDINGS,
    description: "Your findings about every criterion. Give them once, when you have checked all.",
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, finding])),
    required: names,
    additionalProperties: false,
  };
}

/**
 * One verdict for each criterion, in their order. Verdicts without evidence do not count. A criterion that `findings`
 * does not have is uncertain, for the reason `otherwise`.
 */
export function readFindings(
  findings: unknown,
  criteria: readonly string[],
  otherwise: string,
): CriterionVerdict[] {
  const given = recordOf(findings);
  return criteria.map((criterion, index) => {
    const read = FINDING.safeParse(given[criterionName(index)]);
    if (!read.success) return { criterion, verdict: "uncertain", evidence: oneLine(otherwise, LONGEST) };
    const { verdict, evidence, missing } = read.data;
    if (evidence.trim() === "")
      return { criterion, verdict: "uncertain", evidence: "The judge named no evidence for its verdict." };
    const left = verdict === "met" ? "" : oneLine(missing, LONGEST).trim();
    return { criterion, verdict, evidence: oneLine(evidence, LONGEST), ...(left && { missing: left }) };
  });
}
