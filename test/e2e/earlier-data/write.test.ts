import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { APPROVE } from "../../server/raw-client.ts";
import { FORMS, type Rpc, rpcTo, TASKS } from "../../server/tasks/raw.ts";
import { type Home, openHome } from "../../support/harness.ts";
import { serveHttp } from "../../support/harness-http-process.ts";
import { startProgram } from "../../support/harness-process.ts";
import { startPostgres } from "../../support/postgres-server.ts";
import { keepDump, noteCommands } from "./dump.ts";
import { committed, type Facts, keepData, keepFacts } from "./folder.ts";
import { IN_POSTGRES, LENDS, LENT_REPLIES, STORIES, storyOf, type StoryName } from "./stories.ts";

/** The built program that writes the folders. README.md has the command. */
const PROGRAM = process.env["EARLIER_PROGRAM"] ?? "";

interface Server {
  home: Home;
  rpc: Rpc;
  /** Ids that the program has handed out so far. */
  told: Pick<Facts, "runId" | "keys" | "state">;
  /** Starts the run, or repeats the call with one answer to all questions. */
  call(capabilities: object, answer?: object): Promise<void>;
  note(result: object | undefined): void;
  status(): Promise<string>;
  /** Ends the program as `kill -9` does. */
  kill(): Promise<void>;
}

/** The way of each story to the end of its program. */
const TELL: Record<StoryName, (server: Server) => Promise<void>> = {
  approval: ({ call }) => call(FORMS),
  "second-question": async ({ call, home }) => {
    await call(FORMS);
    writeFileSync(join(home.workspace, "limits.txt"), "timeout = 5\nretries = 1000\n");
    await call(FORMS, APPROVE);
  },
  "subagent-approval": async ({ call, rpc, note, status, told }) => {
    const capabilities = { ...FORMS, extensions: TASKS };
    await call(capabilities);
    await expect.poll(status).toBe("input_required");
    note((await rpc("tasks/get", { taskId: told.runId }, capabilities)).result);
  },
  "stored-decision": async ({ call, home, kill, told }) => {
    await call(FORMS);
    await kill();
    const answer = await startProgram(["runs", "answer", told.runId, "--approve"], home.env, PROGRAM);
    expect(await answer.exited).toMatchObject({ code: 0 });
  },
  "begun-effect": async ({ call, home }) => {
    await call(FORMS);
    // The program is killed before this call ends.
    void call(FORMS, APPROVE).catch(() => undefined);
    await expect.poll(() => existsSync(join(home.workspace, "begun.txt"))).toBe(true);
  },
  "lent-model": async ({ call, status }) => {
    await call(LENDS);
    await call(LENDS, LENT_REPLIES[0]);
    // The run gives up its place when nobody has answered for half a minute.
    await expect.poll(status).toBe("input_required");
  },
};

async function open(name: StoryName, storage: Record<string, string> = {}): Promise<Server> {
  const { task, env, ...story } = storyOf(name);
  const home = await openHome({ ...story, env: { ...env, ...storage } });
  const { child, url } = await serveHttp(home, [], PROGRAM);
  const rpc = rpcTo(url);
  const told: Server["told"] = { runId: "", keys: [] };
  const note: Server["note"] = (result = {}) => {
    const { inputRequests = {}, requestState } = result as { inputRequests?: object; requestState?: string };
    told.keys.push(...Object.keys(inputRequests));
    if (requestState !== undefined) told.state = requestState;
  };
  const run = async () => {
    const { result = {} } = await rpc("tools/call", { name: "check_deep_agent", arguments: {} }, {});
    const { runs } = result["structuredContent"] as { runs: [{ run_id: string; status: string }] };
    return runs[0];
  };
  return {
    home,
    rpc,
    told,
    note,
    call: async (capabilities, answer) => {
      const carried = answer && {
        requestState: told.state,
        inputResponses: Object.fromEntries(told.keys.map((key) => [key, answer])),
      };
      const params = { name: "run_deep_agent", arguments: { task }, ...carried };
      note((await rpc("tools/call", params, capabilities)).result);
      told.runId = (await run()).run_id;
    },
    status: async () => (await run()).status,
    kill: async () => {
      child.process.kill("SIGKILL");
      await child.exited;
    },
  };
}

describe.skipIf(PROGRAM === "")("writes with an earlier program", () => {
  test.each(Object.keys(STORIES) as StoryName[])("%s", async (name) => {
    const server = await open(name);
    await TELL[name](server);
    await server.kill();
    keepData(name, server.home);
    keepFacts(name, server.home, server.told);
  });

  test.each(Object.entries(IN_POSTGRES))("%s", async (place, name) => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    await noteCommands(postgres);
    const server = await open(name, { DEEPAGENT_STORAGE: postgres.url });
    await TELL[name](server);
    await server.kill();
    mkdirSync(committed(place, ""), { recursive: true });
    await keepDump(place, postgres);
    keepFacts(place, server.home, server.told);
  });
});
