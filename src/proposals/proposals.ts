/** The copies of workspaces that runs with `changes: "propose"` work in. */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../core/clock.ts";
import { KeyedLock, ownTurn } from "../core/concurrency.ts";
import { ConfigurationError, DeepAgentError, StorageError, codeOf, orElse } from "../core/errors.ts";
import { defined } from "../core/unknown.ts";
import { type FileLock, breakLock, takeLock } from "../core/file-lock.ts";
import { isGone, processMark } from "../core/process-mark.ts";
import { realPath } from "../core/real-path.ts";
import { oneLine } from "../core/text.ts";
import type { Fence, ProposedChange, Proposals, ReviewOutcome, ReviewRecord } from "../runs/proposals.ts";
import { type Run, nameOf } from "../runs/run.ts";
import type { ReviewChoice } from "../tools/request.ts";
import { setTimeout as delay } from "node:timers/promises";
import { isRepository, makeBranch } from "./branch.ts";
import type { Content, FileRules } from "./content.ts";
import { type AppliedFile, applied, compareLines, proposedFile, versionOf } from "./change.ts";
import { MOST_CHARS as MOST_CHARS_OF_FILE } from "./file-text.ts";
import { withRenames } from "./renames.ts";
import { type Guard, type Step, carryOut, contentsBefore, recover, unfinishedPlan } from "./carry-out.ts";
import { stampOf } from "./scan.ts";
import { type Decided, type Manifest, type Sides, WorkspaceCopy, placeName } from "./workspace-copy.ts";

interface ProposalsOptions extends FileRules {
  /** Folder of all copies. */
  dir: string;
  maxBytes: number;
  clock?: Clock;
}

/** Characters of their diffs together. Files for which none are left are read one by one. */
const MOST_CHARS = 8_000_000;

type Place = Pick<Run, "threadId">;
type About = Parameters<Proposals["review"]>[2];

export class WorkspaceProposals implements Proposals {
  readonly #options: ProposalsOptions & { clock: Clock };
  readonly #locks = new KeyedLock();

  constructor(options: ProposalsOptions) {
    this.#options = { clock: systemClock, ...options };
  }

  /** True if the thread has a copy here. */
  has(run: Place): boolean {
    return existsSync(this.#placeOf(run));
  }

  /**
   * Makes the copy if the thread has none, and updates it if another run of the thread used it before. Returns the
   * files that a person did not apply then.
   */
  async open(run: Place & Pick<Run, "id">, workspace: string, fence?: Fence): Promise<string[]> {
    const place = this.#placeOf(run);
    const { dir, maxBytes, clock } = this.#options;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return this.#locks.run(place, async () => {
      const now = clock();
      // Background tasks come while others work in the copy, and change nothing.
      const known = this.has(run) ? await new WorkspaceCopy(place, this.#rules).manifest() : undefined;
      if (known?.run === run.id && !this.isUnfinished(run)) return notApplied(known);
      const found = await this.#exclusively(place, fence, async (copy, manifest, guard) => {
        if (manifest.run !== run.id) await copy.refresh(manifest, { run: run.id, now }, guard);
        return notApplied(manifest);
      });
      if (found !== undefined) return found;
      const source = { workspace: realPath(workspace), run: run.id, rules: this.#rules, maxBytes, now };
      await WorkspaceCopy.make(place, source, async () => fence?.check()).catch(explain);
      return [];
    });
  }

  isUnfinished(run: Place): boolean {
    return unfinishedPlan(this.#placeOf(run)) !== undefined;
  }

  async change(
    run: Place,
    { whole = [], fence }: { whole?: readonly string[]; fence?: Fence } = {},
  ): Promise<ProposedChange | undefined> {
    if (fence !== undefined)
      return this.#withCopy(run, fence, (copy, manifest) => shown(copy, manifest, whole));
    const place = this.#placeOf(run);
    // Other processes may change the copy: it is shown as it was before a review that one of them carries out.
    for (let attempt = 1; existsSync(place); attempt += 1) {
      const plan = unfinishedPlan(place);
      const seen = stampAt(place);
      try {
        const before = plan === undefined ? plan : await contentsBefore(plan);
        const copy = new WorkspaceCopy(place, this.#rules, before);
        const result = await shown(copy, await copy.manifest(), whole);
        if (unfinishedPlan(place) === plan && stampAt(place) === seen) return result;
      } catch (thrown) {
        // The plan or the copy was removed in between.
        if (codeOf(thrown) !== "ENOENT" || attempt === LOOKS) throw thrown;
      }
      if (attempt === LOOKS) throw new StorageError("storage_busy", BUSY);
      await delay(AGAIN_MS);
    }
    return undefined;
  }

  async review(
    run: Place & Pick<Run, "id" | "name" | "task">,
    choice: ReviewChoice,
    about: About,
    fence?: Fence,
  ): Promise<ReviewOutcome> {
    const outcome = await this.#withCopy<ReviewOutcome>(run, fence, async (copy, manifest, guard) => {
      const known = (await copy.reviews()).find(({ id }) => id === about.id);
      if (known !== undefined) return { kind: "done", record: known };
      const review = new Review({ copy, manifest, sides: await openSides(copy, manifest), choice, guard });
      return review.carryOut({ ...about, run: run.id, at: this.#options.clock(), title: nameOf(run) });
    });
    const message =
      "the copy of the workspace is not on this machine. It is where the run worked, in the folder of the setting proposals.folder.";
    return outcome ?? { kind: "failed", message };
  }

  async reviews(run: Place): Promise<readonly ReviewRecord[]> {
    return this.has(run) ? new WorkspaceCopy(this.#placeOf(run), this.#rules).reviews() : [];
  }

  async tidy(
    run: Place & Pick<Run, "id">,
    fence?: Fence,
    note?: Parameters<Proposals["tidy"]>[2],
  ): Promise<void> {
    await this.#withCopy(run, fence, async (copy, manifest) => {
      if (manifest.run !== run.id || (await openSides(copy, manifest)).length > 0) return;
      await note?.(await copy.reviews());
      await rm(this.#placeOf(run), { recursive: true, force: true });
    });
  }

  async discard(run: Place): Promise<void> {
    const place = this.#placeOf(run);
    await this.#locks.run(place, () => rm(place, { recursive: true, force: true }));
  }

  get #rules(): FileRules {
    const { without, policy } = this.#options;
    return { without: without.map(realPath), policy };
  }

  #placeOf({ threadId }: Place): string {
    return join(this.#options.dir, placeName(threadId));
  }

  #withCopy<Result>(run: Place, fence: Fence | undefined, work: Work<Result>): Promise<Result | undefined> {
    const place = this.#placeOf(run);
    return this.#locks.run(place, () => this.#exclusively(place, fence, work));
  }

  /**
   * Works on a copy that no other process changes. First completes the review of a process that has ended.
   * Returns undefined if there is no copy.
   */
  async #exclusively<Result>(place: string, fence: Fence | undefined, work: Work<Result>) {
    const lock = await lockCopy(place, fence);
    if (lock === undefined) return undefined;
    const guard = async (): Promise<void> => {
      await fence?.check();
      if (!lock.isHeld()) throw new StorageError("storage_busy", BUSY);
    };
    try {
      const copy = new WorkspaceCopy(place, this.#rules);
      await recover(copy, guard);
      return await work(copy, await copy.manifest(), guard);
    } catch (thrown) {
      // After a long stop, files are missing because the successor of this process has removed them.
      await guard();
      throw thrown;
    } finally {
      lock.release();
    }
  }
}

/** `guard` throws once another process may change the copy, and is called before each change of it or of the folder. */
type Work<Result> = (copy: WorkspaceCopy, manifest: Manifest, guard: Guard) => Promise<Result>;

const BUSY = "Another process uses the copy of the workspace. Try again in a moment.";
const LOOKS = 40;
const AGAIN_MS = 50;

/** Takes the lock of a copy, from whoever ended or, if this process has a fence, lost it. `undefined`: it is gone. */
async function lockCopy(place: string, fence: Fence | undefined): Promise<FileLock | undefined> {
  const path = join(place, "lock");
  const own = [processMark(), fence?.id, randomBytes(8).toString("hex")].join("\n");
  for (let attempt = 0; attempt < 600; attempt += 1) {
    try {
      const lock = takeLock(path, own);
      if (lock !== undefined) return lock;
    } catch (thrown) {
      if (codeOf(thrown) === "ENOENT") return undefined;
      throw thrown;
    }
    const holder = textAt(path);
    await fence?.check();
    const [owner = ""] = holder.split("\n");
    if (fence !== undefined || isGone(owner)) breakLock(path, (file) => textAt(file) === holder);
    else await delay(AGAIN_MS);
  }
  throw new StorageError("storage_busy", BUSY);
}

const textAt = (path: string): string => orElse(() => readFileSync(path, "utf8"), "");

const stampAt = (place: string): string =>
  orElse(() => stampOf(statSync(join(place, "manifest.json"), { bigint: true })), "");

async function shown(copy: WorkspaceCopy, manifest: Manifest, whole: readonly string[]) {
  const [sides, reviews] = await Promise.all([openSides(copy, manifest), copy.reviews()]);
  if (sides.length === 0) return undefined;
  const files = await shownFiles(sides, manifest, new Set(whole));
  const commits = await copy.commits(manifest).catch(() => []);
  return {
    ...(commits.length === 0 ? {} : { commits }),
    files,
    more: sides.length - files.length,
    copiedAt: manifest.copiedAt,
    isRepository: await isRepository(manifest.workspace),
    reviews,
  };
}

/** The first files, as far as there is room for their diffs; those in `whole` have all of it. */
async function shownFiles(
  sides: readonly Sides[],
  manifest: Manifest,
  whole: ReadonlySet<string> = new Set(),
): Promise<ProposedChange["files"]> {
  const files: ProposedChange["files"][number][] = [];
  let room = MOST_CHARS;
  // The other files come in the next review.
  for (const one of sides.slice(0, 2000)) {
    await ownTurn();
    compareLines(one);
    await ownTurn();
    const most = whole.has(one.path) ? Infinity : Math.min(room, MOST_CHARS_OF_FILE);
    const file = proposedFile(one, manifest, most);
    room -= file.places.reduce((sum, hunk) => sum + hunk.diff.length, 0);
    files.push(file);
  }
  return files;
}

/** The changed files, without those that a branch was made of. */
async function openSides(copy: WorkspaceCopy, manifest: Manifest): Promise<Sides[]> {
  const { decided } = manifest;
  const isInBranch = (sides: Sides): boolean =>
    Object.hasOwn(decided, sides.path) &&
    decided[sides.path]?.how === "branch" &&
    decided[sides.path]?.version === versionOf(sides);
  return (await withRenames(await copy.changed(manifest))).filter((one) => !isInBranch(one));
}

/** The first files that a person did not apply, for the agent. */
function notApplied({ decided }: Manifest): string[] {
  const open = Object.entries(decided).filter(([, { how }]) => how !== "branch");
  return open
    .slice(0, 50)
    .map(([path, { how, message = "" }]) =>
      oneLine(how === "refused" ? `${path} (refused: ${message})` : path, 500),
    );
}

/** A run waits for space and the like; anything else ends it with a reason. */
function explain(thrown: unknown): never {
  const code = codeOf(thrown);
  if (code === undefined || thrown instanceof DeepAgentError) throw thrown;
  const text = `The workspace could not be copied (${code}).`;
  const remedy = "Free some space, or name another place in proposals.folder.";
  if (code === "ENOSPC" || code === "EDQUOT") throw new StorageError("storage_full", `${text} ${remedy}`);
  if (code === "EIO" || code === "EROFS") throw new StorageError("storage_io", text);
  const check = "Check the rights of the workspace and of the data folder.";
  throw new ConfigurationError("proposals", `${text} ${check}`);
}

/** Steps that leave a content at one path, and nothing at another one where the old content is. */
function stepsOf(
  where: Step["in"],
  old: { path: string; content: Content | undefined },
  path: string,
  after: Content | undefined,
): Step[] {
  const at = { in: where, before: old.content };
  if (old.path === path) return [{ ...at, path, after }];
  return [
    { ...at, path: old.path, after: undefined },
    { in: where, path, before: undefined, after },
  ];
}

interface Reviewed {
  copy: WorkspaceCopy;
  manifest: Manifest;
  /** The files that differ now. */
  sides: readonly Sides[];
  choice: ReviewChoice;
  guard: Guard;
}

class Review {
  readonly #reviewed: Reviewed;
  readonly #steps: Step[] = [];
  readonly #moved: string[] = [];
  readonly #applied = new Map<string, AppliedFile>();
  readonly #fitted: Record<string, string> = {};

  constructor(reviewed: Reviewed) {
    this.#reviewed = reviewed;
  }

  async carryOut(about: About & { run: string; at: number; title: string }): Promise<ReviewOutcome> {
    const { copy, manifest, sides, choice, guard } = this.#reviewed;
    for (const one of sides) {
      await ownTurn();
      compareLines(one);
      await ownTurn();
      this.#choose(one, about.shown[one.path]);
    }
    // Another review may have applied a chosen file since it was shown.
    const left = new Set(sides.flatMap(({ path, from = path }) => [path, from]));
    this.#moved.push(...Object.keys(choice.apply).filter((path) => !left.has(path)));
    if (this.#moved.length > 0) return { kind: "moved", paths: this.#moved };
    const read = new Set(choice.read);
    const isUnread = [...this.#applied.keys()].some((path) => !read.has(path));
    const unread = (isUnread ? await shownFiles(sides, manifest) : []).find(
      ({ path, unshown }) => unshown === "text" && this.#applied.has(path) && !read.has(path),
    );
    if (unread !== undefined) return { kind: "failed", message: `${unread.path} was not shown to its end` };
    const branch = await this.#branch(about);
    if (branch?.ok === false) return { kind: "failed", message: branch.message };
    const { message, branch: name, refused = {} } = choice;
    const paths = (isWhole: boolean) =>
      [...this.#applied].flatMap(([path, one]) => (one.isWhole === isWhole ? [path] : []));
    const open = sides.filter((one) => this.#isOpen(one)).map(({ path }) => path);
    const { id, run, at, by } = about;
    const record: ReviewRecord = {
      id,
      run,
      at,
      by,
      applied: paths(true),
      partly: paths(false),
      refused: Object.fromEntries(Object.entries(refused).filter(([path]) => open.includes(path))),
      fitted: this.#fitted,
      ...defined({ message, branch: name, worktree: branch?.worktree }),
      unapplied: open.length,
    };
    return carryOut(copy, { steps: this.#steps, manifest: this.#next(record, about.shown), record }, guard);
  }

  #choose(sides: Sides, shown: string | undefined): void {
    const { path, from: old = path, base, proposed, folder } = sides;
    const { choice, manifest } = this.#reviewed;
    const { apply, fit = [], over = [] } = choice;
    // It was shown as deleted, before it was found to be renamed.
    if (old !== path && (Object.hasOwn(apply, old) || fit.includes(old))) this.#moved.push(old);
    const chosen = Object.hasOwn(apply, path) ? apply[path] : undefined;
    const isFitted = fit.includes(path);
    if (chosen === undefined && !isFitted) return;
    const result = chosen && applied(sides, chosen, over.includes(path));
    const mayFit = isFitted && folder.content?.kind !== "other";
    if (shown !== versionOf(sides) || (result === undefined && !mayFit)) {
      this.#moved.push(path);
    } else if (result !== undefined) {
      this.#applied.set(path, result);
      if (choice.branch !== undefined) return;
      this.#steps.push(...stepsOf("folder", { path: old, content: folder.content }, path, result.folder));
      this.#steps.push(...stepsOf("base", { path: old, content: base }, path, result.base));
    } else {
      const { places: hunks } = proposedFile(sides, manifest);
      const renamed = old === path ? [] : [`rename from ${old}`, `rename to ${path}`];
      this.#fitted[old] = [...renamed, ...hunks.map(({ diff }) => diff)].join("\n");
      this.#steps.push(...stepsOf("tree", { path, content: proposed }, old, folder.content));
      this.#steps.push(...stepsOf("base", { path: old, content: base }, old, folder.content));
    }
  }

  async #branch({ id, title }: About & { title: string }) {
    const { copy, manifest, sides, choice } = this.#reviewed;
    const { branch: name, worktree } = choice;
    if (name === undefined) return undefined;
    const { workspace, files } = manifest;
    const changed = new Map<string, Content | undefined>();
    for (const { path, from } of sides) {
      const result = this.#applied.get(path);
      if (result === undefined) continue;
      if (from !== undefined) changed.set(from, undefined);
      changed.set(path, result.base);
    }
    return makeBranch({
      workspace,
      name,
      id,
      title,
      base: copy.at("base"),
      basePaths: Object.keys(files).filter((path) => files[path]?.ignored !== true),
      files: changed,
      hasWorktree: worktree === true,
    });
  }

  /** True if something of a file is not applied. */
  #isOpen({ path, from = path }: Sides): boolean {
    return this.#applied.get(path)?.isWhole !== true && !Object.hasOwn(this.#fitted, from);
  }

  /** `shown`: versions as a person saw them; nothing is decided of the others. */
  #next({ refused, branch }: ReviewRecord, shown: About["shown"]): Manifest {
    const { manifest, sides: all } = this.#reviewed;
    const inBranches = Object.entries(manifest.decided).filter(([, { how }]) => how === "branch");
    const decided: Record<string, Decided> = Object.fromEntries(inBranches);
    const files = { ...manifest.files };
    for (const sides of all) {
      const { path, from: old = path, proposed, folder, ignored } = sides;
      const chosen = this.#applied.get(path);
      // A branch changes neither the folder nor the base.
      const result = branch === undefined ? chosen : undefined;
      if (branch !== undefined && chosen?.isWhole === true)
        decided[path] = { version: versionOf(sides), how: "branch" };
      const isFitted = Object.hasOwn(this.#fitted, old);
      if (result !== undefined || isFitted) {
        const [at, now] = isFitted ? [old, folder.content] : [path, result?.base];
        delete files[old];
        if (now !== undefined) files[at] = { original: "", ...(ignored ? { ignored } : {}) };
      }
      if (!this.#isOpen(sides) || shown[path] !== versionOf(sides)) continue;
      const later = result && { path, base: result.base, folder: { ...folder, content: result.folder } };
      const version = versionOf(later ? { ...later, proposed, ignored } : sides);
      const message = Object.hasOwn(refused, path) ? refused[path] : undefined;
      const before = Object.hasOwn(manifest.decided, path) ? manifest.decided[path] : undefined;
      const isStillRefused = before?.how === "refused" && before.version === version;
      if (message !== undefined) decided[path] = { version, how: "refused", message };
      else decided[path] = isStillRefused ? before : { version, how: "left" };
    }
    return { ...manifest, files, decided };
  }
}
