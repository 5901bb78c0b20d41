/** Keeps unapproved commands from changing the files that start programs outside the sandbox. */
import { relative } from "node:path";
import { errorMessage } from "../../core/errors.ts";
import type { BackendFailure } from "../errors.ts";
import { SYSTEM_PATH, endScript } from "./environment.ts";
import { Placeholders, ownHolders } from "./placeholders.ts";
import { LastWill } from "./process-runner.ts";
import { type ProtectedPlaces, gitPlaces, startingPlaces } from "./starting-places.ts";

interface Guarded {
  find: () => ProtectedPlaces;
  /** Existing places that earlier commands found. A command may have made more folders than the search looks into. */
  known: Set<string>;
}

/** Guards one folder while commands run in it. Works on Linux only, because holders are known by `/proc`. */
export class StarterGuards {
  readonly #root: string;
  readonly #workspace: Guarded;
  readonly #repositories: readonly Guarded[];
  /** Removes the placeholders if this process is killed. */
  #will: LastWill | undefined;

  /** `root`: a real path. `repositories`: folders of Git outside it, which are guarded from approved commands, too. */
  constructor(root: string, repositories: readonly string[] = []) {
    this.#root = root;
    this.#workspace = { find: () => startingPlaces(root), known: new Set() };
    this.#repositories = repositories.map((folder) => ({ find: () => gitPlaces(folder), known: new Set() }));
  }

  /**
   * Begins to guard the folder for one command, until `release`: then no process of the command may be left. `fixed`:
   * existing places that must not change. `empty`: places that must stay missing, where empty folders are held.
   * Returns undefined if an approved command needs no guard.
   */
  begin(
    isApproved: boolean,
  ):
    | { fixed: readonly string[]; empty: readonly string[]; release: () => void }
    | BackendFailure
    | undefined {
    const guarded = isApproved ? this.#repositories : [this.#workspace, ...this.#repositories];
    if (guarded.length === 0) return undefined;
    const places = guarded.map(({ find }) => find());
    const all = (kind: keyof ProtectedPlaces): string[] => places.flatMap((found) => found[kind]);
    const problem = linkProblem(this.#root, all("links"));
    if (problem !== undefined) return { code: "unsupported", error: `The command was not run: ${problem}` };
    try {
      const held = Placeholders.hold(all("missing"), all("withoutCommonFolder"));
      this.#will ??= new LastWill({
        file: "/bin/sh",
        args: ["-c", endScript("removeHolders"), ownHolders(), ...held.folders],
        env: { PATH: SYSTEM_PATH },
      });
      for (const [index, { known }] of guarded.entries())
        for (const path of places[index]?.existing ?? []) known.add(path);
      const fixed = guarded.flatMap(({ known }) => [...known]);
      return { fixed: [...fixed, ...held.files], empty: held.folders, release: () => held.release() };
    } catch (error) {
      const reason = /^\w+/.exec(errorMessage(error))?.[0] ?? "unknown";
      return { code: "io", error: `The command was not run: the sandbox could not be prepared (${reason})` };
    }
  }

  /** Explains why a person has to approve every command now. Returns undefined if the sandbox can protect the places. */
  problem(): string | undefined {
    return linkProblem(this.#root, startingPlaces(this.#root).links);
  }

  /** Call it when all commands have ended. */
  close(): void {
    this.#will?.revoke();
    this.#will = undefined;
  }
}

function linkProblem(root: string, [link]: readonly string[]): string | undefined {
  if (link === undefined) return undefined;
  return `${relative(root, link)} can start programs outside the sandbox and has a link on its path, which the sandbox cannot protect. A person must approve each command in this workspace.`;
}
