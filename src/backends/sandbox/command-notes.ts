import texts from "../texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";
import patterns from "./output-patterns.json" with { type: "json" };

/** Lines below the output of a sandboxed command with reasons that its programs cannot know. */
export function commandNotes(
  output: string,
  facts: {
    command: string;
    /** True if files that start programs were protected from it. */
    isGuarded: boolean;
    /** True if the person's Git signs commits. */
    signs: boolean;
    /** True if `/tmp` and background programs were lost before this command. */
    isNew?: boolean;
    /** The limit of memory, if programs were ended because of it. */
    memoryMb?: number | undefined;
    /** Room in `/tmp` in MiB, if it is limited. */
    scratchMb?: number;
  },
): string | undefined {
  const { command, isGuarded, signs, isNew = false, memoryMb, scratchMb } = facts;
  const says = (kind: keyof typeof patterns): boolean => new RegExp(patterns[kind], "i").test(output);
  const signing = /\b(?:commit|merge|rebase|cherry-pick|revert|tag|am|pull)\b/;
  const commits = command.split(/[\n|;&]/).some((part) => /\bgit\b/.test(part) && signing.test(part));
  const notes: [applies: boolean, note: string][] = [
    [isNew, texts.startedAgain],
    [memoryMb !== undefined, fill(texts.outOfMemory, memoryMb)],
    [isGuarded && says("readOnly"), texts.readOnlyStarters],
    [says("noNetwork"), texts.noNetwork],
    [scratchMb !== undefined && says("full"), fill(texts.scratchFull, scratchMb)],
    [signs && commits, texts.notSigned],
  ];
  const applying = notes.flatMap(([applies, note]) => (applies ? [`[${note}]`] : []));
  return applying.length === 0 ? undefined : applying.join("\n");
}
