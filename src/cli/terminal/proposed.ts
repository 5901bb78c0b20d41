/** Shows a proposed change in the terminal. */
import { displayName, displayText } from "../../core/text.ts";
import type { ProposedChange, ProposedFile } from "../../runs/proposals.ts";
import { counted } from "../../tools/format.ts";
import { changeText } from "../../tools/review.ts";
import { type BodyStyle, diffBody } from "./body.ts";

/** The lines of one file; its places have numbers that `--file PATH#1,2` takes. */
function fileLines(file: ProposedFile, style: BodyStyle): string[] {
  const { colors } = style;
  const { path, change, added, removed, places, notes, conflict, ignored, decided, unshown } = file;
  const facts = [
    ...(change === "edited" ? [] : [changeText(file)]),
    ...(added === 0 ? [] : [`+${added}`]),
    ...(removed === 0 ? [] : [`−${removed}`]),
    ...notes,
    ...(unshown === "text" ? ["not shown whole"] : []),
    ...(ignored ? ["ignored by Git"] : []),
    ...(decided === undefined ? [] : [decided.how === "refused" ? "rejected before" : "skipped before"]),
  ].map((fact) => displayText(fact));
  return [
    "",
    `${colors.bold(displayName(path))}  ${colors.dim(facts.join(", "))}`,
    ...(conflict === undefined ? [] : [colors.yellow(`  Conflict: ${displayText(conflict)}`)]),
    ...places.flatMap((place, index) => [
      ...(places.length > 1 ? [colors.dim(`  Change ${index + 1} of ${places.length}`)] : []),
      ...diffBody(place.diff.split("\n").slice(2).join("\n"), style),
      ...(place.conflict === undefined
        ? []
        : [
            colors.yellow("  Conflict: the folder now has:"),
            ...place.conflict.split("\n").map((line) => `    ${displayText(line)}`),
          ]),
    ]),
  ];
}

export const changeLines = ({ files, more, commits = [] }: ProposedChange, style: BodyStyle): string[] => [
  ...files.flatMap((file) => fileLines(file, style)),
  ...(more === 0 ? [] : ["", `${counted(more, "more file")}, which the next review shows.`]),
  ...(commits.length > 0 ? ["", "Commits in the copy are not applied, only files are:"] : []),
  ...commits.map((commit) => `  ${displayName(commit)}`),
];
