import { Command } from "@langchain/langgraph";
import { expect, it } from "vitest";
import type { StoredOutcome } from "../../../src/agent/contracts/middleware.ts";
import { fromOutcome, toOutcome } from "../../../src/agent/langgraph/outcome.ts";
import { storedEffects } from "../../../src/agent/langgraph/outcome.ts";

const call = { id: "c", name: "execute", args: {} };

/** A log that keeps the outcome of one call. */
function log() {
  const kept: { outcome?: StoredOutcome; handle?: Uint8Array } = {};
  const keeping = {
    find: () => kept,
    begin: () => undefined,
    finish: (_call: unknown, outcome: StoredOutcome) => void (kept.outcome = outcome),
    keep: (_call: unknown, handle: Uint8Array) => void (kept.handle = handle),
    withdraw: () => undefined,
  };
  const effects = storedEffects(keeping, { agent: [], messageId: "m", callId: "c" });
  return { effects, text: () => new TextDecoder().decode(kept.outcome?.data) };
}

const MESSAGE =
  '{"lc":1,"type":"constructor","id":["langchain_core","messages","ToolMessage"],"kwargs":{"content":"done","name":"execute","tool_call_id":"c","status":"success","artifact":{"exitCode":0},"additional_kwargs":{},"response_metadata":{}}}';
const NONE = '{"lc":2,"type":"undefined"}';
const commandOf = (update: string, goto = "[]") =>
  `{"command":{"update":${update},"goto":${goto},"graph":${NONE},"resume":${NONE}}}`;

it("a handle comes back until there is a result", async () => {
  const { effects } = log();
  await effects.keep({ taskId: "t" });
  expect(await effects.find()).toEqual({ handle: { taskId: "t" } });
  await effects.finish(call, { content: "done" });
  expect((await effects.find())?.handle).toBeUndefined();
});

it("results are kept byte for byte as earlier versions kept them, and come back", async () => {
  const { effects, text } = log();
  const result = { content: "done", artifact: { exitCode: 0 } };
  await effects.finish(call, { ...result, whole: { text: "not kept", end: "" } });
  expect(text()).toBe(`{"message":${MESSAGE}}`);
  expect((await effects.find())?.result).toMatchObject(result);
  const update = { files: { "/a": null } };
  await effects.finish(call, { ...result, update });
  expect(text()).toBe(commandOf(`{"messages":[${MESSAGE}],"files":{"/a":null}}`));
  expect((await effects.find())?.result).toMatchObject({ ...result, update });
  await effects.finish(call, fromOutcome(new Command({ goto: "end", update: [["todos", []]] })));
  expect(text()).toBe(commandOf('[["todos",[]]]', '["end"]'));
  const { result: listed = { content: "" } } = (await effects.find()) ?? {};
  expect(toOutcome(call, listed)).toMatchObject({ goto: ["end"], update: [["todos", []]] });
});
