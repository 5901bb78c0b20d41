/**
 * Carries out a review: all that was chosen gets into the folder, or nothing does. What is to be done is on the disk
 * before the first file changes, and so is what was there before: a process that was killed in between is followed by
 * one that completes it.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../core/errors.ts";
import type { ReviewOutcome, ReviewRecord } from "../runs/proposals.ts";
import { type Content, Folder, isSameContent } from "./content.ts";
import type { Manifest, WorkspaceCopy } from "./workspace-copy.ts";

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

const PLAN = "plan.json";
const NEXT = "manifest.json";

export async function carryOut(copy: WorkspaceCopy, plan: Plan): Promise<ReviewOutcome> {
  await rm(copy.at("apply"), { recursive: true, force: true });
  await mkdir(copy.at("apply"));
  try {
    await store(copy.at("apply"), plan);
  } catch (thrown) {
    await rm(copy.at("apply"), { recursive: true, force: true });
    if (codeOf(thrown) === undefined) throw thrown;
    return { kind: "failed", message: `the plan could not be stored (${codeOf(thrown)})` };
  }
  return complete(copy);
}

/** Completes what an earlier process had begun, if there is something. */
export async function recover(copy: WorkspaceCopy): Promise<void> {
  if (existsSync(copy.at("apply", PLAN))) await complete(copy);
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
  await rename(join(place, `${PLAN}.tmp`), join(place, PLAN));
}

async function complete(copy: WorkspaceCopy): Promise<ReviewOutcome> {
  const { steps: stored, record } = JSON.parse(await readFile(copy.at("apply", PLAN), "utf8")) as StoredPlan; // written by `store`
  const { workspace } = await copy.manifest();
  const folders = { folder: new Folder(workspace), tree: copy.tree, base: copy.base };
  const steps = await Promise.all(
    stored.map(async ({ before, after, ...at }): Promise<Step> => {
      return { ...at, before: await contentOf(copy, before), after: await contentOf(copy, after) };
    }),
  );
  // Deletions come first: a folder may stand where a file was, and the other way round.
  steps.sort((a, b) => Number(a.after !== undefined) - Number(b.after !== undefined));
  for (const [index, step] of steps.entries()) {
    const problem = await take(step, folders);
    if (problem === undefined) continue;
    for (const { before, after, ...at } of steps.slice(0, index).toReversed())
      await take({ ...at, before: after, after: before }, folders);
    await forget(copy);
    return problem === MOVED ? { kind: "moved", paths: [step.path] } : { kind: "failed", message: problem };
  }
  await writeFile(copy.at("reviews", `${record.id}.next`), JSON.stringify(record), { flush: true });
  await rename(copy.at("apply", NEXT), copy.at("manifest.json")).catch(unlessMissing);
  await rename(copy.at("reviews", `${record.id}.next`), copy.at("reviews", `${record.id}.json`));
  await forget(copy);
  return { kind: "done", record };
}

/** Nothing is continued once the plan is gone. */
async function forget(copy: WorkspaceCopy): Promise<void> {
  await rm(copy.at("apply", PLAN), { force: true });
  await rm(copy.at("apply"), { recursive: true, force: true });
}

const MOVED = "moved";

/** Takes one step, unless it was taken. Gives the problem, if there is one; then this step changed nothing. */
async function take(
  { in: where, path, before, after }: Step,
  folders: Readonly<Record<Step["in"], Folder>>,
): Promise<string | undefined> {
  const folder = folders[where];
  const found = await folder.read(path);
  if (isSameContent(found.content, after)) return undefined;
  if (!isSameContent(found.content, before)) return MOVED;
  const problem = await folder.put(path, after, found);
  if (problem === undefined && after === undefined) await folder.removeEmpty(path);
  return problem;
}

async function contentOf(copy: WorkspaceCopy, stored: Stored): Promise<Content | undefined> {
  if (stored === null) return undefined;
  if ("link" in stored) return { kind: "link", target: stored.link };
  const { bytes, executable } = stored;
  return { kind: "file", bytes: await readFile(copy.at("apply", bytes)), executable };
}

function unlessMissing(thrown: unknown): void {
  if (codeOf(thrown) !== "ENOENT") throw thrown;
}
