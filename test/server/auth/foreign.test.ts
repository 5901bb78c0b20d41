import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RUN_VIEWS } from "../../../src/server/contracts/uris.ts";
import { SERVER_TOOLS } from "../../../src/server/tools/tools.ts";
import { runIdOf, untilStatus, writeFile } from "../../e2e/support.ts";
import { INITIALIZE, send, sessionHeaders } from "../../support/clients-raw.ts";
import { play } from "../../support/harness-brain.ts";
import { entry, openGuarded, withTokens } from "./support.ts";
import { attempts } from "../../support/effort.ts";

const SECRET = "zanzibar";
const ALICE_KEY = "alice-key";
const TASK = "Remember the launch";
const think = play({
  [TASK]: [
    { toolCalls: [writeFile("/memories/launch.md", `The launch code is ${SECRET}.\n`)] },
    { toolCalls: [writeFile("/draft.md", `${SECRET} draft\n`)] },
    { toolCalls: [writeFile("/workspace/plan.md", "plan\n")] },
    { text: `remembered ${SECRET}` },
  ],
  "Of my own": [{ text: "mine" }],
});

/** Names of things of Alice, or of things of nobody. */
interface Names {
  run: string;
  thread: string;
  approval: string;
}
type Params = Record<string, unknown>;
type Ask = (names: Names) => { method: string; params: Params };

const tool =
  (name: string, args: (names: Names) => Params): Ask =>
  (names) => ({ method: "tools/call", params: { name, arguments: args(names) } });
const read =
  (uri: (names: Names) => string): Ask =>
  (names) => ({ method: "resources/read", params: { uri: uri(names) } });
const complete =
  (uri: string, name: string, value: (names: Names) => string, known = false): Ask =>
  (names) => ({
    method: "completion/complete",
    params: {
      ref: { type: "ref/resource", uri },
      argument: { name, value: value(names) },
      ...(known ? { context: { arguments: { run_id: names.run } } } : {}),
    },
  });
const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const RUN = "deepagent://runs/{run_id}";

/** Every way to name a run, a thread, an approval or a file of somebody, in both eras. */
const BOTH: Record<string, Ask> = {
  check: tool("check_deep_agent", ({ run }) => ({ run_id: run })),
  cancel: tool("cancel_deep_agent", ({ run }) => ({ run_id: run })),
  "answer with a foreign run": tool("answer_deep_agent", ({ run, approval }) => ({
    run_id: run,
    approval_id: approval,
    decision: "approve",
  })),
  "read a thread file": tool("read_agent_file", ({ run }) => ({ run_id: run, path: "/draft.md" })),
  "read a shared file by a run": tool("read_agent_file", ({ run }) => ({
    run_id: run,
    path: "/workspace/plan.md",
  })),
  "continue a thread": tool("run_deep_agent", ({ thread }) => ({ task: "x", thread_id: thread })),
  "fork a thread": tool("run_deep_agent", ({ thread }) => ({ task: "x", thread_id: `${thread}@1` })),
  "search for a name": tool("search_memories", ({ run }) => ({ query: run })),
  "list from a run on": ({ run }) => ({
    method: "resources/list",
    params: { cursor: base64({ before: run, listed: 50 }) },
  }),
  "read a run": read(({ run }) => `deepagent://runs/${run}`),
  ...Object.fromEntries(
    RUN_VIEWS.map((view): [string, Ask] => [
      `read ${view} of a run`,
      read(({ run }) => `deepagent://runs/${run}/${view}`),
    ]),
  ),
  "read events of a run after one": read(({ run }) => `deepagent://runs/${run}/events?after=0`),
  "read a file of a run": read(({ run }) => `deepagent://runs/${run}/files/draft.md`),
  "read the folder of a run": read(({ run }) => `deepagent://runs/${run}/files/`),
  "complete a run": complete(RUN, "run_id", ({ run }) => run),
  "complete the beginning of a run": complete(RUN, "run_id", ({ run }) => run.slice(0, 12)),
  "complete a view of a run": complete(`${RUN}/report`, "run_id", ({ run }) => run.slice(0, 12)),
  "complete a path of a run": complete(`${RUN}/files/{+path}`, "path", () => "dr", true),
};
const LEGACY: Record<string, Ask> = {
  ...BOTH,
  subscribe: ({ run }) => ({ method: "resources/subscribe", params: { uri: `deepagent://runs/${run}` } }),
  unsubscribe: ({ run }) => ({
    method: "resources/unsubscribe",
    params: { uri: `deepagent://runs/${run}` },
  }),
};
const task =
  (method: string, more: (names: Names) => Params = () => ({})): Ask =>
  (names) => ({ method, params: { taskId: names.run, ...more(names) } });
const MODERN: Record<string, Ask> = {
  ...BOTH,
  "get a task": task("tasks/get"),
  "cancel a task": task("tasks/cancel"),
  "answer a task": task("tasks/update", ({ approval }) => ({
    inputResponses: { [`${approval}:1`]: { action: "accept", content: { decision: "approve" } } },
  })),
};
const ERAS = { legacy: LEGACY, modern: MODERN };
type EraName = keyof typeof ERAS;

test("every tool and every view is among the ways", () => {
  const asked = Object.values(MODERN).map((ask) => ask({ run: "r", thread: "t", approval: "a" }));
  const tools = new Set(asked.map(({ params }) => params["name"]));
  for (const { name } of SERVER_TOOLS) expect(tools).toContain(name);
  const uris = asked.map(({ params }) => String(params["uri"]));
  for (const view of RUN_VIEWS) expect(uris).toContain(`deepagent://runs/r/${view}`);
});

/** Header values are ASCII. */
const nameOf = ({ name, uri, taskId }: Params): string =>
  [name, uri, taskId].find((value) => typeof value === "string") ?? "";

async function open() {
  const authenticator = withTokens(entry("alice-token", "alice"), entry("bob-token", "bob"));
  const options = { authenticator, requestsPerMinute: 100_000 };
  const server = await openGuarded(think, options, { DEEPAGENT_APPROVALS_ALLOW_MODEL_ANSWERS: "true" });
  const alice = await server.connect("alice-token", "v1");
  const start = { task: TASK, idempotency_key: ALICE_KEY };
  const runId = runIdOf(await alice.call("run_deep_agent", start));
  const report = await untilStatus(alice, runId, "input_required");
  const [approval] = report["approvals"] as { id: string }[]; // as RunReport has it
  const names: Names = {
    run: runId,
    thread: String(report["thread_id"]),
    approval: approval?.id ?? "",
  };
  const bearer = { authorization: "Bearer bob-token" };
  const opened = await send(server.url, { body: INITIALIZE, headers: bearer });
  const session = sessionHeaders(opened);
  /** What Bob is answered, in the bytes that do not depend on when. */
  const bob = async (era: EraName, { method, params }: ReturnType<Ask>): Promise<string> => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {
        elicitation: { form: {} },
        extensions: { "io.modelcontextprotocol/tasks": {} },
      },
    };
    const modern = {
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      "mcp-name": nameOf(params),
    };
    const sent = era === "modern" ? { ...params, _meta } : params;
    const { status, headers, body } = await send(server.url, {
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: sent }),
      headers: { ...bearer, ...(era === "modern" ? modern : session) },
    });
    const { date: _date, ...rest } = headers;
    return JSON.stringify([status, rest, body.replaceAll(/^id: .*$/gm, "id: N")]);
  };
  return { server, alice, names, report, bob };
}

/** Another name of the same form, which nothing has. */
const unknown = (name: string, salt: number): string => {
  const prefix = /^[a-z]+_/.exec(name)?.[0] ?? "";
  let digit = salt;
  return (
    prefix +
    name.slice(prefix.length).replaceAll(/[A-Za-z0-9]/g, () => {
      digit = (digit * 31 + 7) % 26;
      return String.fromCodePoint(97 + digit);
    })
  );
};

/** `text` with the names replaced, so that answers about different things can be compared. */
const nameless = (text: string, names: Names): string => {
  const shown = Object.entries(names).reduce((rest, [kind, name]) => {
    const forms = [name, encodeURIComponent(name), name.slice(0, 12)];
    return forms.reduce((part, form) => part.replaceAll(form, kind.toUpperCase()), rest);
  }, text);
  return shown.replaceAll(/[A-Za-z0-9_-]{60,}/g, "CURSOR");
};

describe.each(Object.keys(ERAS) as EraName[])("in the %s era", (era) => {
  test("what is said about somebody's own is, to the byte, what is said about nothing", async () => {
    const { names, report, alice, bob } = await open();
    const ways = Object.entries(ERAS[era]);
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(ways, { minLength: ways.length }),
        fc.nat({ max: 10_000 }),
        async (order, salt) => {
          const { run, thread, approval } = names;
          const unknownOf = (name: string) => unknown(name, salt);
          const nobody = { run: unknownOf(run), thread: unknownOf(thread), approval: unknownOf(approval) };
          for (const [way, ask] of order) {
            const foreign = await bob(era, ask(names));
            const none = await bob(era, ask(nobody));
            expect([way, nameless(foreign, names)]).toEqual([way, nameless(none, nobody)]);
            expect(foreign).not.toContain(SECRET);
          }
        },
      ),
      attempts(4),
    );
    // Nothing has come of all that.
    expect(await untilStatus(alice, names.run, "input_required")).toEqual(report);
  });

  test("lists, searches, numbers and repeated keys show nothing of anybody else", async () => {
    const { server, names, bob } = await open();
    const seen = [
      await bob(era, { method: "resources/list", params: {} }),
      await bob(era, { method: "resources/templates/list", params: {} }),
      await bob(era, BOTH["search for a name"]!({ ...names, run: SECRET })),
      await bob(era, read(() => "deepagent://files/memories/")(names)),
      await bob(era, read(() => "deepagent://files/memories/launch.md")(names)),
      await bob(era, complete("deepagent://files/{+path}", "path", () => "memories/")(names)),
    ];
    const headers = { authorization: "Bearer bob-token" };
    seen.push((await send(server.url.replace("/mcp", "/metrics"), { method: "GET", headers })).body);
    const stranger = await server.connect("bob-token", "v1");
    const own = await stranger.call("run_deep_agent", { task: TASK, idempotency_key: ALICE_KEY });
    expect(runIdOf(own)).not.toBe(names.run);
    const other = { task: "Of my own", idempotency_key: ALICE_KEY.replace("alice", "bob") };
    seen.push((await stranger.call("run_deep_agent", other)).text);
    for (const text of seen) {
      for (const secret of [names.run, names.thread, "launch code", 'launch.md"', "alice"]) {
        expect(text).not.toContain(secret);
      }
    }
  });
});
