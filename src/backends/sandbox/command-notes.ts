import texts from "../texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";
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
  const notes: [applies: boolean, note: string][] = [
    [isNew, texts.startedAgain],
    [memoryMb !== undefined, fill(texts.outOfMemory, memoryMb)],
    [
      isGuarded &&
        /read-only file system|EROFS|EBUSY|EISDIR|EPERM|device or resource busy|is a directory|operation not permitted/i.test(
          output,
        ),
      texts.readOnlyStarters,
    ],
    [
      /EAI_AGAIN|ENOTFOUND|ENETUNREACH|getaddrinfo|could not resolve (?:host|proxy)|couldn't resolve host|name resolution|temporary failure resolving|name or service not known|network is unreachable|network is disabled|nodename nor servname|failed to (?:lookup address|resolve)|dial tcp: lookup/i.test(
        output,
      ),
      texts.noNetwork,
    ],
    [
      scratchMb !== undefined && /no space left on device|ENOSPC|disk quota exceeded/i.test(output),
      fill(texts.scratchFull, scratchMb),
    ],
    [
      signs &&
        command
          .split(/[\n|;&]/)
          .some(
            (part) =>
              /\bgit\b/.test(part) && /\b(?:commit|merge|rebase|cherry-pick|revert|tag|am|pull)\b/.test(part),
          ),
      texts.notSigned,
    ],
  ];
  const applying = notes.flatMap(([applies, note]) => (applies ? [`[${note}]`] : []));
  return applying.length === 0 ? undefined : applying.join("\n");
}
