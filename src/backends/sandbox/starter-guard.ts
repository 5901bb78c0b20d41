/** Keeps commands that nobody approved from changing what starts programs outside the sandbox. */
import { relative } from "node:path";
import { errorMessage } from "../../core/errors.ts";
import type { BackendFailure } from "../errors.ts";
import { SYSTEM_PATH } from "./environment.ts";
import { Placeholders, REMOVE_HOLDERS, ownHolders } from "./placeholders.ts";
import { LastWill } from "./process-runner.ts";
import { startingPlaces } from "./starting-places.ts";

/** The protection of one command, for mounts. */
export interface StarterGuard {
  /** Existing places that must not change. */
  fixed: readonly string[];
  /** Places that must stay missing; empty folders are held there. */
  empty: readonly string[];
  /** Ends it. No process of the command may be left. */
  release: () => void;
}

/** Guards one folder while commands run in it. Works on Linux only, because holders are known by `/proc`. */
export class StarterGuards {
  readonly #root: string;
  /** Places that earlier commands found. A command may have made more folders than the search looks into. */
  readonly #known = new Set<string>();
  /** Removes what is held if this process is killed. */
  #will: LastWill | undefined;

  /** `root`: a real path. */
  constructor(root: string) {
    this.#root = root;
  }

  /** Begins to guard the folder for one command. */
  begin(): StarterGuard | BackendFailure {
    const { existing, missing, withoutCommonFolder, links } = startingPlaces(this.#root);
    const problem = linkProblem(this.#root, links);
    if (problem !== undefined) return { code: "unsupported", error: `The command was not run: ${problem}` };
    try {
      const held = Placeholders.hold(missing, withoutCommonFolder);
      this.#will ??= new LastWill({
        file: "/bin/sh",
        args: ["-c", REMOVE_HOLDERS, ownHolders(), ...held.folders],
        env: { PATH: SYSTEM_PATH },
      });
      for (const path of existing) this.#known.add(path);
      return { fixed: [...this.#known, ...held.files], empty: held.folders, release: () => held.release() };
    } catch (error) {
      return {
        code: "io",
        error: `The command was not run: the sandbox could not be prepared (${codeText(error)})`,
      };
    }
  }

  /** Why a person has to approve every command now; `undefined`: the sandbox can protect the places. */
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
  return `${relative(root, link)} can start programs outside the sandbox and has a link on its path, which the sandbox cannot protect. A person has to approve each command in this workspace.`;
}

const codeText = (error: unknown): string => /^\w+/.exec(errorMessage(error))?.[0] ?? "unknown";

const REFUSED =
  /read-only file system|EROFS|EBUSY|EISDIR|EPERM|device or resource busy|is a directory|operation not permitted/i;

/** The line that tells the model why a guarded command may have failed. */
export function refusalNote(output: string): string | undefined {
  if (!REFUSED.test(output)) return undefined;
  return "[Some files start programs outside the sandbox: hooks and settings of Git, and settings of editors and agents. Only a command that a person approved can change them. Ask the person to make that change.]";
}
