/**
 * Carries out a review: the folder gets the whole choice, or nothing. The plan is on the disk before the first file
 * changes, with the contents before and after: if the process ends in between, the next one completes the plan. A
 * process that was only paused finds out before its next step that another one followed.
 */
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { StorageError, codeOf, orElse } from "../core/errors.ts";
import { mergeTexts } from "../core/merge.ts";
import type { ReviewOutcome, ReviewRecord } from "../runs/proposals.ts";
import { type Content, type Folder, isSameContent } from "./content.ts";
import { type Manifest, UNFINISHED, type WorkspaceCopy } from "./workspace-copy.ts";

/** A change of one path in the folder, in `tree` or in `base`. */
export interface Step {
  in: "folder" | "tree" | "base";
  path: string;
  before: Content | undefined;
  after: Content | undefined;
}

export interface Plan {
  steps: readonly Step[];
  manifest: Manifest;
  record: ReviewRecord;
}

/** A content as the plan names it. `bytes`: the name of a file beside the plan. */
type Stored = null | { link: string } | { bytes: string; executable: boolean };
interface StoredPlan {
  steps: { in: Step["in"]; path: string; before: Stored; after: Stored }[];
  record: ReviewRecord;
}

/** Throws once another process may change the copy. */
export type Guard = () => Promise<void>;

/** Each folder with a plan has its own name after this, so that a paused process touches no later plan. */
const APPLY = "apply";
const PLAN = "plan.json";
const NEXT = "manifest.json";
/** The number of the steps that were taken: what became of their files since then is of no interest. */
const TAKEN = "taken";

export async function carryOut(copy: WorkspaceCopy, plan: Plan, guard: Guard): Promise<ReviewOutcome> {
  const place = copy.at(`${APPLY}-${randomBytes(6).toString("hex")}`);
  try {
    await mkdir(place);
    await store(place, plan);
    await guard();
    await rename(join(place, `${PLAN}.tmp`), join(place, PLAN));
  } catch (thrown) {
    await rm(place, { recursive: true, force: true });
    if (codeOf(thrown) === undefined || thrown instanceof StorageError) throw thrown;
    return { kind: "failed", message: `the plan could not be stored (${codeOf(thrown)})` };
  }
  return complete(copy, place, guard);
}

/** The folder of the plan that is carried out now, or was when its process ended. */
export function unfinishedPlan(place: string): string | undefined {
  const names = orElse(() => readdirSync(place), []).filter((name) => name.startsWith(APPLY));
  return names.map((name) => join(place, name)).find((folder) => existsSync(join(folder, PLAN)));
}

/** Completes the plan that an earlier process had begun, and removes plans that it had not finished preparing. */
export async function recover(copy: WorkspaceCopy, guard: Guard): Promise<void> {
  for (let found = unfinishedPlan(copy.at()); found !== undefined; found = unfinishedPlan(copy.at()))
    await complete(copy, found, guard, true);
  for (const name of await readdir(copy.at()))
    if (name.startsWith(APPLY) || name === UNFINISHED)
      await rm(copy.at(name), { recursive: true, force: true });
}

async function store(place: string, { steps, manifest, record }: Plan): Promise<void> {
  let count = 0;
  const storedOf = async (content: Content | undefined): Promise<Stored> => {
    if (content === undefined || content.kind === "other") return null;
    if (content.kind === "link") return { link: content.target };
    const name = `${(count += 1)}`;
    await writeFile(join(place, name), content.bytes, { flush: true });
    return { bytes: name, executable: content.executable };
  };
  const stored: StoredPlan = { steps: [], record };
  for (const { before, after, ...at } of steps)
    stored.steps.push({ ...at, before: await storedOf(before), after: await storedOf(after) });
  await writeFile(join(place, NEXT), JSON.stringify(manifest), { flush: true });
  await writeFile(join(place, `${PLAN}.tmp`), JSON.stringify(stored), { flush: true });
}

const readPlan = async (place: string): Promise<StoredPlan> =>
  JSON.parse(await readFile(join(place, PLAN), "utf8")) as StoredPlan; // written by `store`

/** Takes all steps, and writes down that. If one of them fails, takes those before it back. */
async function complete(
  copy: WorkspaceCopy,
  place: string,
  guard: Guard,
  isRecovered = false,
): Promise<ReviewOutcome> {
  const { steps: stored, record } = await readPlan(place);
  const known = copy.at("reviews", `${record.id}.json`);
  const folders = { folder: copy.folder(await copy.manifest()), tree: copy.tree, base: copy.base };
  const steps: Step[] = [];
  for (const { before, after, ...at } of existsSync(known) ? [] : stored)
    steps.push({ ...at, before: await contentOf(place, before), after: await contentOf(place, after) });
  // Deletions come first: a folder may stand where a file was, and the other way round.
  steps.sort((a, b) => Number(a.after !== undefined) - Number(b.after !== undefined));
  const taken = Number(await readFile(join(place, TAKEN), "utf8").catch(() => ""));
  // The names of files that the plan is about to put in their places begin with it.
  const mark = createHash("sha256").update(record.id).digest("hex").slice(0, 12);
  for (const [index, step] of [...steps.entries()].slice(taken)) {
    // A paused process may have been about to put this in its place.
    if (isRecovered) await folders[step.in].removeUnfinished(step.path, mark);
    const problem = await take(step, folders[step.in], mark, guard);
    await guard();
    await (problem === undefined
      ? writeFile(join(place, TAKEN), `${index + 1}`)
      : rm(join(place, TAKEN), { force: true }));
    if (problem === undefined) continue;
    const kept: string[] = [];
    for (const earlier of steps.slice(0, index).toReversed())
      if (!(await takeBack(earlier, folders[earlier.in], mark, guard))) kept.push(earlier.path);
    await guard();
    await forget(place);
    if (kept.length > 0) {
      const message = `only ${kept.join(", ")} has the change, because somebody edited the same lines since`;
      return { kind: "failed", message };
    }
    return problem === MOVED ? { kind: "moved", paths: [step.path] } : { kind: "failed", message: problem };
  }
  await guard();
  if (!existsSync(known)) {
    await writeFile(`${known}.next`, JSON.stringify(record), { flush: true });
    await rename(join(place, NEXT), copy.at("manifest.json")).catch((thrown: unknown) => {
      if (codeOf(thrown) !== "ENOENT") throw thrown;
    });
    await rename(`${known}.next`, known);
  }
  await forget(place);
  return { kind: "done", record };
}

/** Nothing is continued once the plan is gone. */
async function forget(place: string): Promise<void> {
  await rm(join(place, PLAN), { force: true });
  await rm(place, { recursive: true, force: true });
}

const MOVED = "moved";

/** Takes one step, unless it was taken. Returns the problem, if there is one; then this step changed nothing. */
async function take({ path, before, after }: Step, folder: Folder, mark: string, guard: Guard) {
  const found = await folder.read(path);
  if (isSameContent(found.content, after)) return undefined;
  if (!isSameContent(found.content, before)) return MOVED;
  await guard();
  const problem = await folder.put(path, after, found, mark);
  if (problem === undefined && after === undefined) await folder.removeEmpty(path);
  return problem;
}

/** Undoes a step and keeps later edits of the file. False: the change stays. */
async function takeBack({ before, after, ...at }: Step, folder: Folder, mark: string, guard: Guard) {
  const problem = await take({ ...at, before: after, after: before }, folder, mark, guard);
  if (problem !== MOVED) return problem === undefined;
  const { content: edited } = await folder.read(at.path);
  if (edited?.kind !== "file" || before?.kind !== "file" || after?.kind !== "file") return false;
  // Latin-1 keeps every byte, also of texts that are not UTF-8.
  const [base, theirs, ours] = [after, edited, before].map(({ bytes }) => bytes.toString("latin1"));
  const merged = mergeTexts(base ?? "", theirs ?? "", ours ?? "");
  if (merged === undefined) return false;
  const without = { ...edited, bytes: Buffer.from(merged, "latin1") };
  return (await take({ ...at, before: edited, after: without }, folder, mark, guard)) === undefined;
}

/** The contents before a plan, as another process carries it out, by `in` and path. */
export async function contentsBefore(place: string): Promise<ReadonlyMap<string, Content | undefined>> {
  const { steps, record } = await readPlan(place);
  const contents = new Map<string, Content | undefined>();
  if (existsSync(join(place, "..", "reviews", `${record.id}.json`))) return contents;
  for (const { in: where, path, before } of steps) {
    const key = `${where} ${path}`;
    if (!contents.has(key)) contents.set(key, await contentOf(place, before));
  }
  return contents;
}

async function contentOf(place: string, stored: Stored): Promise<Content | undefined> {
  if (stored === null) return undefined;
  if ("link" in stored) return { kind: "link", target: stored.link };
  const { bytes, executable } = stored;
  return { kind: "file", bytes: await readFile(join(place, bytes)), executable };
}
