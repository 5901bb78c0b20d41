import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Form, FormAnswer } from "../support/clients.ts";
import { MATRIX, connect, openHome, openStdio, openWorld } from "../support/harness.ts";
import { play, wronglyAnswered } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { APPROVE, inWorkspace, repeat, runIdOf, untilStatus, writeFile } from "./support.ts";

const PROPOSE = { changes: "propose" };

/** Answers the reviews of a run one after the other, and remembers their forms. */
function reviewer(...answers: NonNullable<FormAnswer["content"]>[]) {
  const forms: Form[] = [];
  const answer = (form: Form): FormAnswer => {
    forms.push(form);
    const content = answers[forms.length - 1];
    return content === undefined ? { action: "cancel" } : { action: "accept", content };
  };
  return { forms, answer };
}

const writesBoth = { toolCalls: [writeFile("/workspace/a.md", "a\n"), writeFile("/workspace/b.md", "b\n")] };
const twoFiles = [writesBoth];

describe.each(MATRIX)("$kind over $transport", ({ transport, kind }) => {
  const tags = transport === "stdio" ? ["long"] : [];

  test("a run asks once for all its changes, and applies the chosen ones", { tags }, async () => {
    const world = await openWorld(transport, {
      think: play({ "Write both": [...twoFiles, { text: "Both are written." }] }),
    });
    const { answer, forms } = reviewer({ decision: "chosen", files: ["b.md"], files_2: true });
    const client = await world.connect(kind, answer);
    const { structured } = await client.call("run_deep_agent", { task: "Write both", ...PROPOSE });
    expect(structured).toMatchObject({ status: "completed", answer: "Both are written." });
    expect(forms).toHaveLength(1);
    expect(forms[0]?.message).toContain("+a");
    expect(inWorkspace(world, "a.md")).toBeUndefined();
    expect(inWorkspace(world, "b.md")).toBe("b\n");
    expect(wronglyAnswered(world.brain)).toEqual([]);
  });
});

test("what the person says goes back to the agent, whose next change is reviewed again", async () => {
  const world = await openWorld("memory", {
    think: play({
      "Write both": [
        ...twoFiles,
        { text: "Both are written." },
        {
          toolCalls: [
            { name: "edit_file", args: { file_path: "/workspace/a.md", old_string: "a", new_string: "A" } },
          ],
        },
        { text: "In capitals now." },
      ],
    }),
  });
  const { answer, forms } = reviewer({ decision: "none", message: "Use capitals." }, { decision: "all" });
  const client = await world.connect("v2-modern", answer);
  const { structured } = await client.call("run_deep_agent", { task: "Write both", ...PROPOSE });
  expect(structured).toMatchObject({ status: "completed", answer: "In capitals now." });
  expect(forms).toHaveLength(2);
  expect(JSON.stringify(world.brain.thoughts.at(-1))).toContain("Use capitals.");
  expect(inWorkspace(world, "a.md")).toBe("A\n");
  expect(inWorkspace(world, "b.md")).toBe("b\n");
  // The copy goes when the end of the run is stored.
  await expect.poll(() => readdirSync(join(world.dataDir, "proposals"))).toEqual([]);
});

test("a killed server loses neither the copy nor the question", { tags: "long" }, async () => {
  const home = await openHome({
    env: { DEEPAGENT_DELIVERY_WINDOW: "0.2" },
    think: play({ "Write both": [...twoFiles, { text: "Both are written." }] }),
  });
  const first = await openStdio(home);
  const before = await connect(first, "v2-legacy");
  const runId = runIdOf(await before.call("run_deep_agent", { task: "Write both", ...PROPOSE }));
  await untilStatus(before, runId, "input_required");
  process.kill(first.pid(), "SIGKILL");
  const { answer } = reviewer({ decision: "all" });
  const after = await connect(await openStdio(home), "v2-modern", answer);
  expect(await untilStatus(after, runId, "completed")).toMatchObject({ answer: "Both are written." });
  expect(inWorkspace(home, "a.md")).toBe("a\n");
  expect(existsSync(join(home.workspace, "b.md"))).toBe(true);
});

test(
  "an approval that was given before a crash does not resume the run while its review waits",
  { tags: "long" },
  async () => {
    const asked = deferred();
    let isSilent = true;
    const home = await openHome({
      env: { DEEPAGENT_DELIVERY_WINDOW: "0.2" },
      think: play({
        "Write both": [
          { toolCalls: [{ name: "execute", args: { command: "echo checked > checks.md" } }] },
          () => {
            asked.resolve();
            return isSilent ? { fault: "hang" } : writesBoth;
          },
          { text: "Both are written." },
        ],
      }),
    });
    const first = await openStdio(home);
    const before = await connect(first, "v2-legacy", () => APPROVE);
    const runId = runIdOf(await before.call("run_deep_agent", { task: "Write both", ...PROPOSE }));
    const watched = untilStatus(before, runId, "completed").catch(() => undefined);
    await asked.promise;
    process.kill(first.pid(), "SIGKILL");
    await watched;
    isSilent = false;
    const { answer, forms } = reviewer({ decision: "all" });
    const after = await connect(await openStdio(home), "v2-modern", answer);
    expect(await untilStatus(after, runId, "completed")).toMatchObject({ answer: "Both are written." });
    expect(forms).toHaveLength(1);
    expect(inWorkspace(home, "checks.md")).toBe("checked\n");
    expect(inWorkspace(home, "b.md")).toBe("b\n");
  },
);

test("a run waits for its background agents before it asks for a review", async () => {
  const start = { description: "Write the third", subagent_type: "general-purpose" };
  const asked = deferred();
  const world = await openWorld("memory", {
    think: play({
      "Write both": [
        { toolCalls: [{ name: "start_async_task", args: start }, ...writesBoth.toolCalls] },
        () => {
          asked.resolve();
          return { text: "I wait for the third." };
        },
        { text: "All are written." },
      ],
      "Write the third": [
        async () => {
          await asked.promise;
          return { toolCalls: [writeFile("/workspace/c.md", "c\n")] };
        },
        { text: "The third is written." },
      ],
    }),
  });
  const { answer, forms } = reviewer({ decision: "all" });
  const client = await world.connect("v2-modern", answer);
  const { structured } = await client.call("run_deep_agent", { task: "Write both", ...PROPOSE });
  expect(structured).toMatchObject({ status: "completed", answer: "All are written." });
  expect(forms).toHaveLength(1);
  for (const name of ["a", "b", "c"]) expect(inWorkspace(world, `${name}.md`)).toBe(`${name}\n`);
});

test("a conflict is shown, and a form that does not show all lines offers to apply nothing", async () => {
  const world = await openWorld("memory", {
    think: play({
      "Write both": [
        () => {
          writeFileSync(join(world.workspace, "a.md"), "somebody else\n");
          const long = writeFile("/workspace/long.md", "x\n".repeat(9000));
          return { toolCalls: [writeFile("/workspace/a.md", "a\n"), long] };
        },
        { text: "Both are written." },
      ],
    }),
  });
  const { answer, forms } = reviewer({ decision: "all" }, { decision: "none" });
  const client = await world.connect("v2-modern", answer);
  const { structured } = await client.call("run_deep_agent", { task: "Write both", ...PROPOSE });
  expect(structured).toMatchObject({ status: "completed" });
  expect(String(structured["message"])).toContain("2 files are proposed and not applied");
  expect(forms[0]?.message).toContain("- a.md (added, +1, conflict");
  expect(forms[0]?.message).toContain("too small to show the whole question");
  expect(JSON.stringify(forms[0])).not.toContain("Apply 1 of 2");
  // What was not offered is not accepted either.
  expect(forms[1]?.message).toContain("cannot be applied here");
  expect(inWorkspace(world, "a.md")).toBe("somebody else\n");
  expect(inWorkspace(world, "long.md")).toBeUndefined();
});

test("another run of the thread continues in the copy, and its agent is told what was refused", async () => {
  const world = await openWorld("memory", {
    think: play({
      "Write both": [...twoFiles, { text: "Both are written." }, { text: "Nothing more." }],
    }),
  });
  const { answer } = reviewer({ decision: "chosen", files: ["b.md"], files_2: true });
  const client = await world.connect("v2-modern", answer);
  const first = await client.call("run_deep_agent", { task: "Write both", ...PROPOSE });
  const order = { task: "And now", thread_id: first.structured["thread_id"], ...PROPOSE };
  expect((await client.call("run_deep_agent", order)).structured).toMatchObject({ status: "completed" });
  const asked = JSON.stringify(world.brain.thoughts.at(-1));
  expect(asked).toContain("which the person did not apply");
  expect(asked).toContain("- a.md");
});

test("commands see the change, and Git in the copy leaves the folder alone", { tags: "bwrap" }, async () => {
  const one = { toolCalls: [writeFile("/workspace/a.md", "a\n")] };
  const world = await openWorld("memory", {
    env: { DEEPAGENT_APPROVALS_EXECUTE: "unsandboxed" },
    think: play({
      "Write one": [one, { toolCalls: [{ name: "execute", args: { command: COMMIT } }] }, repeat],
    }),
  });
  const git = (...args: string[]) => execFileSync("git", args, { cwd: world.workspace, encoding: "utf8" });
  git("init", "-q", "-b", "main");
  git("config", "user.name", "Somebody");
  git("config", "user.email", "somebody@example.org");
  writeFileSync(join(world.workspace, "first.md"), "first\n");
  git("add", "-A");
  git("commit", "-qm", "first");
  writeFileSync(join(world.workspace, "uncommitted.md"), "uncommitted\n");
  const { answer } = reviewer({ decision: "all" });
  const client = await world.connect("v2-modern", answer);
  const { structured } = await client.call("run_deep_agent", { task: "Write one", ...PROPOSE });
  expect(structured).toMatchObject({ status: "completed" });
  expect(String(structured["answer"])).toMatch(/A\s+a\.md[^]*second[^]*first/);
  expect(git("log", "--format=%s")).toBe("first\n");
  expect(git("status", "--porcelain")).toBe("?? a.md\n?? made.md\n?? uncommitted.md\n");
  expect(inWorkspace(world, "made.md")).toBe("made\n");
});

const COMMIT =
  "git add a.md && git status --short && git -c user.name=A -c user.email=a@example.org commit -qm second && git log --format=%s && echo made > made.md";
