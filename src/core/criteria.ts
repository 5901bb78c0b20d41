/** Criteria of a goal, and verdicts about them. */

const MAX_CRITERIA = 20;
const MAX_CHARACTERS = 1000;

/** Describes the problem of a goal's criteria. Returns undefined if they have none. */
export function criteriaProblem(criteria: readonly string[]): string | undefined {
  const texts = criteria.map((criterion) => criterion.trim());
  if (texts.length === 0) return "A goal needs at least one criterion.";
  if (texts.length > MAX_CRITERIA) return `A goal has at most ${MAX_CRITERIA} criteria; got ${texts.length}.`;
  const empty = texts.indexOf("");
  if (empty >= 0)
    return `Criterion ${empty + 1} of the goal is empty; write what has to be true, or leave it out.`;
  const long = texts.findIndex((text) => text.length > MAX_CHARACTERS);
  if (long >= 0)
    return `Criterion ${long + 1} of the goal has ${texts[long]?.length} characters; at most ${MAX_CHARACTERS} are allowed. Put details into a file and name it.`;
  const twice = texts.findIndex((text, index) => texts.indexOf(text) !== index);
  return twice < 0 ? undefined : `Criterion ${twice + 1} of the goal is given twice; leave one out.`;
}

/** `impossible`: nothing that the agent does can meet it. `uncertain`: the judge cannot find out. */
export const VERDICTS = ["met", "not_met", "impossible", "uncertain"] as const;

export type Verdict = (typeof VERDICTS)[number];

export const VERDICT_WORDS: Readonly<Record<Verdict, string>> = {
  met: "met",
  not_met: "not met",
  impossible: "impossible",
  uncertain: "uncertain",
};
