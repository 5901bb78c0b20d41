import { describe, expect, test } from "vitest";
import { isAsleep, uniqueSleep, until } from "../backends/sandbox/support.ts";
import type { TestClient } from "../support/clients.ts";
import { connect, type Home, openHome, openStdio } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { type HttpProcess, serveHttp } from "../support/harness-http-process.ts";
import { APPROVE, person, runIdOf, untilStatus } from "./support.ts";

/** Ways in which work on a run ends before its command does; each leaves no process behind. */
const ENDS: Record<string, (server: HttpProcess, client: TestClient, runId: string) => Promise<unknown>> = {
  cancelling: (_, client, runId) => client.call("cancel_deep_agent", { run_id: runId }),
  SIGTERM: async ({ child }) => {
    child.process.kill("SIGTERM");
    expect(await child.exited).toEqual({ code: 0, signal: null });
  },
  SIGKILL: async ({ child }) => {
    child.process.kill("SIGKILL");
    await child.exited;
  },
};

const MODES: { name: string; needs: string[]; env: Record<string, string> }[] = [
  { name: "sandboxed", needs: ["bwrap", "long"], env: {} },
  // On this search path there is no bwrap.
  { name: "unsandboxed", needs: [], env: { PATH: "/nowhere" } },
];

const { answer: approving } = person({ sleep: APPROVE });

/** A product whose agent runs a command of three processes that sleep for so many seconds, one in a session of its own. */
function homeWithCommand(seconds: string, env: Record<string, string>): Promise<Home> {
  const sleep = `PATH=/usr/bin:/bin sleep ${seconds}`;
  const command = `${sleep} & (PATH=/usr/bin:/bin setsid sleep ${seconds} &) ; ${sleep}`;
  return openHome({
    env: { ...env, DEEPAGENT_DELIVERY_WINDOW: "0.2" },
    think: play({
      "Run a command": [
        { toolCalls: [{ name: "execute", args: { command } }] },
        ({ request }) => ({ text: request.messages.at(-1)?.toolResults[0]?.text ?? "" }),
      ],
    }),
  });
}

/** Starts the run, approves its command, and waits until all of it sleeps. */
async function untilAtWork(client: TestClient, seconds: string): Promise<string> {
  const runId = runIdOf(await client.call("run_deep_agent", { task: "Run a command" }));
  // A call that returns before the command is put to a person asks nobody, so there is always a next one.
  const watched = untilStatus(client, runId, "completed", "cancelled");
  await Promise.race([
    until(() => isAsleep(seconds, 3)),
    watched.then(({ answer }) => Promise.reject(new Error(`The command ended early: ${String(answer)}`))),
  ]);
  return runId;
}

describe.each(MODES)("a command that is $name", ({ needs, env }) => {
  for (const [name, end] of Object.entries(ENDS)) {
    const tags = [...needs, ...(name === "SIGTERM" ? ["long"] : [])];
    test(`${name} ends it with every process it started`, { tags }, async () => {
      const seconds = uniqueSleep();
      const home = await homeWithCommand(seconds, env);
      const server = await serveHttp(home);
      const client = await connect(server.connector, "v1", approving);
      const runId = await untilAtWork(client, seconds);
      await end(server, client, runId);
      await until(() => !isAsleep(seconds));
      if (name === "cancelling") return;
      const next = await connect((await serveHttp(home)).connector, "v2-modern", approving);
      const { answer: told } = await untilStatus(next, runId, "completed");
      expect(told).toMatch(/^Error: The server stopped while execute was at work/);
    });
  }

  test("a client that goes ends it with every process it started", { tags: needs }, async () => {
    const seconds = uniqueSleep();
    const client = await connect(
      await openStdio(await homeWithCommand(seconds, env)),
      "v2-modern",
      approving,
    );
    await untilAtWork(client, seconds);
    await client.close();
    await until(() => !isAsleep(seconds));
  });
});
