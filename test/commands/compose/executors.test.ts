import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LocalShellBackend } from "../../../src/backends/sandbox/shell-backend.ts";
import {
  chooseExecutor,
  type Executor,
  type ExecutorChoice,
  isIsolated,
  RunExecutors,
} from "../../../src/app/executors.ts";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { folder } from "../../backends/sandbox/support.ts";

const busy = { reason: "the machine is busy", isTransient: true } as const;
const never = (): Promise<void> => new Promise(() => {});

/** A choice that gives one of these answers after the other, the last one from then on. */
function choosing(...answers: ExecutorChoice[]): { executors: RunExecutors; asked: () => number } {
  let asked = 0;
  const executors = new RunExecutors(
    async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)];
      if (!answer) throw new Error("no answer");
      return answer;
    },
    () => [folder()],
  );
  onTestFinished(() => executors.close());
  return { executors, asked: () => asked };
}

const host = (): ExecutorChoice => ({ kind: "host", open: () => shell(), mount: "/workspace", ...busy });
const sandbox = (): ExecutorChoice => ({
  kind: "sandbox",
  name: "a sandbox",
  open: () => isolated(),
  mount: "/workspace",
});
const shell = (): Executor => new LocalShellBackend({ rootDir: folder(), virtualMode: true });
const isolated = (): Executor => {
  const backend = shell();
  Object.assign(backend.capabilities ?? {}, { isolation: "process" });
  return backend;
};

const run = (id: string) => ({ id, principal: "local", threadId: "thr_1" });

describe("RunExecutors", () => {
  it("tries again before a run while it is not known whether there is a sandbox", async () => {
    const { executors, asked } = choosing(host(), host(), sandbox());
    const first = await executors.of(run("run_1"), never);
    expect(isIsolated(first)).toBe(false);
    expect(isIsolated(await executors.of(run("run_2"), never))).toBe(true);
    // A run keeps what it began with, because its commands are gated for that.
    expect(await executors.of(run("run_1"), never)).toBe(first);
    expect(isIsolated(await executors.of(run("run_3"), never))).toBe(true);
    expect(asked()).toBe(3);
  });

  it("asks once for runs that begin at one time, and no more when it is known that there is none", async () => {
    const known: ExecutorChoice = { kind: "none", reason: "Bubblewrap is missing" };
    const { executors, asked } = choosing({ kind: "none", ...busy }, known);
    const ids = ["run_1", "run_2", "run_3"];
    const found = await Promise.all(ids.map((id) => executors.of(run(id), never)));
    expect(found.map((executor) => isIsolated(executor))).toEqual([false, false, false]);
    expect(await executors.of(run("run_4"), never)).toBeUndefined();
    expect(asked()).toBe(2);
  });
});

describe("a configured sandbox", () => {
  const choose = (sandbox: object) => {
    const execute = { sandbox };
    return chooseExecutor(ConfigSchema.parse({ dataDir: "/data", workspace: folder(), execute }));
  };
  const opened = async (choice: ExecutorChoice): Promise<Executor> => {
    if (choice.kind === "none") throw new Error(choice.reason);
    const executor = await choice.open(folder());
    onTestFinished(() => executor.close());
    return executor;
  };

  it("runs its setup before anything else", async () => {
    const choice = await choose({ provider: "local", setupScript: "echo prepared > ready.txt" });
    expect(choice).toMatchObject({ kind: "host", mount: "/workspace" });
    const executor = await opened(choice);
    expect(await executor.execute("cat ready.txt")).toMatchObject({ output: "prepared\n" });
  });

  it.each([
    [{ provider: "local", setupScript: "echo oh; exit 3" }, "failed with exit code 3; its output ends: oh"],
    [{ provider: "local", setupScriptPath: "/missing.sh" }, "The file of setupScriptPath cannot be read"],
    [{ provider: "docker", program: "/missing", image: "x" }, "did not start a container of 'x'"],
    [{ provider: "docker" }, "execute.sandbox: A container needs an image"],
    [{ provider: "daytona" }, "execute.sandbox: "],
  ])("%j says what is wrong", async (sandbox, text) => {
    vi.stubEnv("DAYTONA_API_KEY", "");
    onTestFinished(() => void vi.unstubAllEnvs());
    const error: unknown = await choose(sandbox)
      .then(opened)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(String(error)).toContain(text);
  });
});
