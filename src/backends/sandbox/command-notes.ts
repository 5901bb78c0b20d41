/** Lines below the output of a sandboxed command with reasons that its programs cannot know. */

interface CommandFacts {
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
}

export function commandNotes(
  output: string,
  { command, isGuarded, signs, isNew = false, memoryMb, scratchMb }: CommandFacts,
): string | undefined {
  const notes: [applies: boolean, note: string][] = [
    [
      isNew,
      "/tmp and the home folder were emptied and background programs ended before this command, because nothing had used them for long or their sandbox was stopped.",
    ],
    [
      memoryMb !== undefined,
      `A program was ended because the commands of this run used more than ${memoryMb} MiB of memory together, the limit in the setting execute.memoryMb. Use less memory, or stop background jobs.`,
    ],
    [
      isGuarded &&
        /read-only file system|EROFS|EBUSY|EISDIR|EPERM|device or resource busy|is a directory|operation not permitted/i.test(
          output,
        ),
      "Some files start programs outside the sandbox: Git hooks and settings, and settings of editors and agents. Only a command that a person approved can change them. Ask the person to make that change.",
    ],
    [
      /EAI_AGAIN|ENOTFOUND|ENETUNREACH|getaddrinfo|could not resolve (?:host|proxy)|couldn't resolve host|name resolution|temporary failure resolving|name or service not known|network is unreachable|network is disabled|nodename nor servname|failed to (?:lookup address|resolve)|dial tcp: lookup/i.test(
        output,
      ),
      "Commands in this sandbox have no network, only servers that this run started on 127.0.0.1.",
    ],
    [
      scratchMb !== undefined && /no space left on device|ENOSPC|disk quota exceeded/i.test(output),
      `/tmp, which is also the home folder, has room for ${scratchMb} MiB. Remove files there, or write to the workspace.`,
    ],
    [
      signs && /\bgit\b[^\n|;&]*\b(?:commit|merge|rebase|cherry-pick|revert|tag|am|pull)\b/.test(command),
      "Commits and tags made here are not signed, although the person's Git settings ask for it: the keys are not in the sandbox.",
    ],
  ];
  const applying = notes.flatMap(([applies, note]) => (applies ? [`[${note}]`] : []));
  return applying.length === 0 ? undefined : applying.join("\n");
}
