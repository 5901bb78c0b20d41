/** A run whose calls rules may allow, and the rules that a person saved in another one, with names that are long. */
import { callRequests } from "../../../src/runs/asked-events.ts";
import type { ActionRequest, HitlRequest } from "../../../src/agent/contracts/question.ts";
import { entryOf } from "../../../src/runs/events.ts";
import type { RuledCall } from "../../../src/rules/call.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { ruleName } from "../../../src/tools/call-request.ts";
import { isApproval } from "../../../src/runs/run.ts";
import { connect, databaseFile, ME, mine, openServer } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

export const RULED_AT = Date.UTC(2026, 2, 3, 10, 0, 0);
const HOUR = 3_600_000;

export const LONG_PATH = `文書/検潮所の記録/${"潮位の観測と警報の送信について".repeat(4)}/報告書.md`;
const FOLDER = "/home/me/tide-alarms";

const DIFF = "--- a.md\n+++ a.md\n@@ -1 +1 @@\n-old\n+new";

const EDIT = { kind: "edit", paths: [LONG_PATH] } as const;
const CHANGE = { kind: "edit", paths: ["docs/guide/alarms.md"] } as const;
const FETCH = { kind: "page", host: "docs.example.org" } as const;
const TOOL = { kind: "server_tool", name: "issues__create_issue" } as const;

const ACTIONS: Readonly<Record<RuledCall["kind"], (call: RuledCall) => Partial<ActionRequest>>> = {
  edit: (call) => {
    const path = `/workspace/${call.kind === "edit" ? call.paths.join() : ""}`;
    return {
      name: "edit_file",
      args: { file_path: path, old_string: "old", new_string: "new" },
      preview: { kind: "diff", summary: `Edit ${path} (1 occurrence)`, detail: DIFF },
      same: { key: path, text: `change of ${path}` },
    };
  },
  page: () => ({ name: "web_fetch", args: { url: "https://docs.example.org/alarms" } }),
  server_tool: () => ({ name: "issues__create_issue", args: { title: "An alarm gets lost" } }),
  command: (call) => {
    const command = call.kind === "command" ? call.command : "";
    return {
      name: "execute",
      args: { command },
      preview: { kind: "command", summary: command, detail: command },
    };
  },
};

const asked = (call: RuledCall): HitlRequest => ({
  actionRequests: [
    {
      name: "",
      args: {},
      description: "",
      toolCallId: `call_${call.kind}`,
      ruled: { call, folder: FOLDER },
      ...ACTIONS[call.kind](call),
    },
  ],
  reviewConfigs: [],
});

/** `asking` waits; what `saved` asked was always allowed, by its narrowest and by its widest rules. */
export async function ruledRun(calls: readonly RuledCall[] = [EDIT, TOOL, FETCH]) {
  const file = databaseFile();
  const repository = sqliteRuns(connect(file));
  const work = repository.work({});
  const { service } = openServer(
    file,
    { model: scriptedModel(() => ({ text: "" })) },
    { clock: () => RULED_AT, concurrentRuns: 0 },
  );
  const begin = async (id: string, waiting: readonly RuledCall[], hoursAgo: number): Promise<string> => {
    const now = RULED_AT - hoursAgo * HOUR;
    const fresh = { runId: `run_${id}`, newThreadId: `thr_${id}`, environment: "tide-alarms", now };
    await repository.create(ME, { task: "Keep the records of the tide in order" }, fresh);
    const wanted = { owner: "seed", environment: "tide-alarms", now, expiresAt: RULED_AT + HOUR };
    const lease = (await repository.claimNext(wanted, 10))?.lease;
    if (lease === undefined) throw new Error("nothing waits");
    for (const [at, call] of waiting.entries()) {
      if (call === FETCH && id === "asking") await read(lease, now);
      await work.ask(lease, [], `ask_${id}_${at}`, callRequests(asked(call)), now);
    }
    return fresh.runId;
  };
  const read = (lease: Parameters<typeof work.record>[0], now: number) => {
    const results = [SEARCH, SERVER].map((source, at) =>
      entryOf({
        kind: "tool_finished",
        agent: [],
        callId: `c_${at}`,
        tool: "web_search",
        status: "success",
        summary: "",
        source,
      }),
    );
    return work.record(lease, results, now);
  };
  await allowAll(service, await begin("saved", [EDIT, FETCH], 30), 0);
  await allowAll(service, await begin("wider", [CHANGE], 20), -1);
  return { service, runId: await begin("asking", calls, 1) };
}

const SEARCH = "results of a web search";
const SERVER = "results of the MCP server issues";

/** Allows what waits in a run, each by the offer of that number. */
async function allowAll(service: RunService, runId: string, offer: number): Promise<void> {
  const view = await mine(service).read.view(runId);
  for (const { id, ruled } of view?.requests.filter(isApproval) ?? []) {
    const rules = [ruleName(ruled?.offers?.at(offer) ?? { rules: [] })];
    await mine(service).requests.answer(
      runId,
      { requestId: id, answer: { type: "approve_always", rules } },
      "page",
    );
  }
}
