/** Changes that a run proposes instead of making them, and their review by a person. */
import { createHash } from "node:crypto";
import type { ReviewChoice, ReviewedFile } from "../tools/request.ts";
import type { Run } from "./run.ts";

/** Lines of a file that change together. */
export interface ProposedPlace {
  /** Unified diff of these lines, with those around them. */
  diff: string;
  /** The diff is cut, because it is longer than any screen shows. */
  isPart?: true;
  added: number;
  removed: number;
  /** The lines of the folder that are in the way: they were changed since the copy was made. */
  conflict?: string;
}

export interface ProposedFile extends Pick<
  ReviewedFile,
  "path" | "from" | "change" | "version" | "added" | "removed"
> {
  /** Empty for a file without lines, or with only another path: then it is applied whole. */
  places: readonly ProposedPlace[];
  /** Things to know besides its lines, such as `link to ../x` or `can run programs (tasks)`. */
  notes: readonly string[];
  /** The file of the folder is in the way as a whole. */
  conflict?: string;
  /** Git ignores it. */
  ignored?: true;
  /** True if the file cannot be applied, for example because it is too large. A note has the reason. */
  stays?: true;
  /** Content that neither places nor notes show: a text that a person can read by itself, or bytes that are not. */
  unshown?: "text" | "bytes";
  /** A person looked at this version before and did not apply it. */
  decided?: { how: "left" | "refused"; message?: string };
}

export const hasConflict = ({ conflict, places }: Pick<ProposedFile, "conflict" | "places">): boolean =>
  conflict !== undefined || places.some((place) => place.conflict !== undefined);

export const versionsOf = (
  files: readonly Pick<ProposedFile, "path" | "version">[],
): Record<string, string> => Object.fromEntries(files.map(({ path, version }) => [path, version]));

/** Names a change with all of its files: another one once any of them is another one. */
export const digestOf = ({ files, more }: ProposedChange): string =>
  createHash("sha256")
    .update(JSON.stringify([more, ...files.map(({ path, version }) => [path, version])]))
    .digest("hex")
    .slice(0, 24);

/** The whole change, as it is now. */
export interface ProposedChange {
  /** In the order of their paths. */
  files: readonly ProposedFile[];
  /** Number of changed files that are not among them, because there are too many. */
  more: number;
  /** When the copy was made, in milliseconds since the epoch. */
  copiedAt: number;
  /** True if a branch can be made of it. */
  isRepository: boolean;
  /** Commits in the copy, which are not applied: only files are. */
  commits?: readonly string[];
  /** Oldest first. */
  reviews: readonly ReviewRecord[];
}

/** The decisions of one review, and what became of them. */
export interface ReviewRecord {
  /** That of the request, if the run was open. */
  id: string;
  /** Absent in records of earlier versions. */
  run?: string;
  /** Milliseconds since the epoch. */
  at: number;
  by: string;
  applied: readonly string[];
  /** Paths of those of which some places were not applied. */
  partly: readonly string[];
  refused: Readonly<Record<string, string>>;
  /** The change of the agent in files that it is to fit to the folder, as diffs. */
  fitted: Readonly<Record<string, string>>;
  message?: string;
  /** Made of the change instead of applying it to the folder. */
  branch?: string;
  /** Folder of the branch. */
  worktree?: string;
  /** Number of files that are still proposed and not applied. */
  unapplied: number;
}

export type ReviewOutcome =
  | { kind: "done"; record: ReviewRecord }
  /** Nothing was applied: these files are not as they were shown any more, or the folder is in the way. */
  | { kind: "moved"; paths: readonly string[] }
  /** The text completes "Nothing was applied:" with the reason. */
  | { kind: "failed"; message: string };

/** The right to change a copy, which one process has at a time. */
export interface Fence {
  /** Differs each time the right is granted. */
  readonly id: string;
  /** @throws LeaseLostError once somebody else may have the right */
  check(): Promise<void>;
}

/**
 * Workspace copies for runs with `changes: "propose"`, one for each thread. Each change of a copy needs a fence, and
 * first completes the work that an earlier process began.
 */
export interface Proposals {
  /**
   * Returns the changes left to apply, or undefined if none are left or the run has no copy. Without a fence nothing
   * is changed: while another process carries out a review, the change is shown in its earlier state. `whole`: files
   * whose places have all of it.
   */
  change(
    run: Run,
    options?: { whole?: readonly string[]; fence?: Fence },
  ): Promise<ProposedChange | undefined>;
  /** True if this machine has the copy of the run's thread. */
  has(run: Pick<Run, "threadId">): boolean;
  /** True if a process carries out a review, or was ended while it did. */
  isUnfinished(run: Pick<Run, "threadId">): boolean;
  /** Carries out a choice, all or nothing, and once for each id. `shown`: versions of files as the person saw them. */
  review(
    run: Run,
    choice: ReviewChoice,
    about: { id: string; by: string; shown: Readonly<Record<string, string>> },
    fence: Fence,
  ): Promise<ReviewOutcome>;
  /** The reviews of the thread's copy so far. */
  reviews(run: Pick<Run, "threadId">): Promise<readonly ReviewRecord[]>;
  /**
   * Deletes the copy if nothing of it is left to apply and no later run of the thread uses it. `note`: stores its
   * reviews before that.
   */
  tidy(
    run: Pick<Run, "id" | "threadId">,
    fence: Fence,
    note: (reviews: readonly ReviewRecord[]) => Promise<void>,
  ): Promise<void>;
  /** Deletes the copy with all that was not applied. Nobody else may have a fence. */
  discard(run: Run): Promise<void>;
}

/** True if applying all of a change includes this file. `isRead`: the person read it to its end. */
export const isPlain = (file: ProposedFile, isRead = false): boolean =>
  !(hasConflict(file) || file.ignored || file.stays || file.decided?.how === "refused") &&
  (isRead || !file.unshown);
