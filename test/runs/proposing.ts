/** Runs that propose changes, with real copies of a workspace. */
import { isQuestion } from "../../src/runs/run.ts";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { tool } from "@langchain/core/tools";
import { vi } from "vitest";
import { z } from "zod";
import type { Clock } from "../../src/core/clock.ts";
import { defined } from "../../src/core/unknown.ts";
import type { IdSource } from "../../src/core/ids.ts";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";
import { copyOf } from "../../src/proposals/workspace-copy.ts";
import type { OpenQuestion } from "../../src/runs/run.ts";
import type { RunService } from "../../src/runs/service.ts";
import { mine, calling, databaseFile, openServer, reach, startRun } from "./support.ts";
import { filesIn } from "../support/files-in.ts";

/** Files by their paths; `null`: there is none. */
export type Files = Readonly<Record<string, string | null>>;

interface Proposing {
  service: RunService;
  workspace: string;
  /** The folder that the agents of a thread work in. */
  copyOf: (threadId: string) => string;
}

export function writeFiles(root: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    const place = join(root, path);
    if (text === null) rmSync(place);
    else {
      mkdirSync(dirname(place), { recursive: true });
      writeFileSync(place, text);
    }
  }
}

function commitAll(folder: string): void {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder });
  git("init", "-q", "-b", "main");
  git("config", "user.name", "Test");
  git("config", "user.email", "test@example.org");
  git("add", "-A");
  git("commit", "-qm", "Before");
}

interface ProposingOptions {
  /** What the workspace has before. */
  before: Files;
  /** Commits that in a repository. Default: the workspace is none. */
  isRepository?: boolean;
  /** Changes the copy, each time that an agent begins to work. */
  work: (copy: string) => void | Promise<void>;
  clock?: Clock;
  /** Makes ids. Default: random ones. */
  newId?: IdSource;
}

export function proposingServer({ before, isRepository, work, clock, newId }: ProposingOptions): Proposing {
  const home = filesIn();
  const [workspace, dir] = [join(home, "tide-alarms"), join(home, "copies")];
  mkdirSync(workspace);
  writeFiles(workspace, before);
  if (isRepository) commitAll(workspace);
  const given = defined({ clock });
  const proposals = new WorkspaceProposals({ dir, without: [], maxBytes: 1e8, ...given });
  const { service } = openServer(
    databaseFile(),
    async (run) => {
      await proposals.open(run, workspace);
      const change = tool(
        async () => {
          await work(copyOf(dir, run.threadId));
          return "done";
        },
        { name: "change", description: "Changes files.", schema: z.object({}) },
      );
      return { model: calling({ name: "change", args: {} }), tools: [change] };
    },
    {
      proposals,
      choices: () => ({ models: [], limits: {}, changes: "propose" }),
      ...defined({ newId }),
      ...given,
    },
  );
  return { service, workspace, copyOf: (threadId) => copyOf(dir, threadId) };
}

/** A run that asks for the review of its change. */
export async function askingForReview(options: ProposingOptions, task = "Change files") {
  const server = proposingServer(options);
  const { id: runId, threadId } = await startRun(server.service, task);
  const question = await reviewOf(server.service, runId);
  return { ...server, runId, copy: server.copyOf(threadId), question };
}

/** The review that a run asks for. */
export async function reviewOf(service: RunService, runId: string): Promise<OpenQuestion> {
  const questions = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  const asked = questions.find(({ status }) => status === "pending");
  if (asked === undefined) throw new Error("The run asks for no review.");
  return asked;
}

/** The review that a run asks for after another one. */
export async function nextReview(service: RunService, runId: string, last: string): Promise<OpenQuestion> {
  const read = async () =>
    (await mine(service).read.view(runId))?.requests
      .filter(isQuestion)
      .find(({ status, id }) => status === "pending" && id !== last);
  return vi.waitFor(async () => {
    const found = await read();
    if (found === undefined) throw new Error("The run asks for no other review.");
    return found;
  }, 30_000);
}

/** The same run after a person applied nothing of its change. */
export async function endedUnapplied(options: ProposingOptions, task?: string) {
  const asking = await askingForReview(options, task);
  const choice = { apply: {} };
  await mine(asking.service).requests.answer(
    asking.runId,
    { requestId: asking.question.id, answer: { type: "review", choice } },
    "test",
  );
  await reach(asking.service, asking.runId, "completed");
  return asking;
}
